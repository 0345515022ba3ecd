#include "tests/e2e/tools/failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rocemu::e2e {

void fail(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Failure(text);
}

std::string errno_text(int errno_value) {
  if (errno_value == 0) return "success";
  const char* name = strerrorname_np(errno_value);
  return std::string(name != nullptr ? name : "?") + " (" + std::strerror(errno_value) + ")";
}

void fail_errno(int errno_value, const char* what) {
  fail("%s: %s", what, errno_text(errno_value).c_str());
}

void must(int errno_value, const char* what) {
  if (errno_value != 0) fail_errno(errno_value, what);
}

}  // namespace rocemu::e2e
