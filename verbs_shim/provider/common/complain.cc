#include "verbs_shim/provider/common/complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

namespace rocemu::provider {

void complain(const char* format, ...) {
  const int saved = errno;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  fprintf(stderr, "rocemu: %s\n", line);
  errno = saved;
}

}  // namespace rocemu::provider
