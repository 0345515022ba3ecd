// ioctl on the device's descriptor: libibverbs asks a context that it imports for an asynchronous
// event descriptor.
#include <sys/ioctl.h>

#include <cstdarg>

#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/real.h"

using namespace rocemu::preload;

namespace {

__attribute__((noinline)) int ioctl_noted(int fd, FdEntry* entry, unsigned long request,
                                          void* argument) {
  const Real& next = real();
  const rocemu_fd_watch* watch = entry->watch.load(std::memory_order_acquire);
  if (watch == nullptr || watch->on_ioctl == nullptr || !in_owner_process() ||
      check_entry(fd, entry) == nullptr) {
    return next.ioctl(fd, request, argument);
  }
  return watch->on_ioctl(entry->context, request, argument);
}

}  // namespace

ROCEMU_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  FdEntry* entry = find_entry(fd);
  if (entry != nullptr) [[unlikely]]
    return ioctl_noted(fd, entry, request, argument);
  return real().ioctl(fd, request, argument);
}
