// read, write and close, for the descriptors in the table.
#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/real.h"

using namespace rocemu::preload;

namespace {

__attribute__((noinline)) ssize_t write_noted(int fd, FdEntry* entry, const void* data,
                                              size_t bytes) {
  const Real& next = real();
  const rocemu_fd_watch* watch = entry->watch.load(std::memory_order_acquire);
  if (watch == nullptr || watch->on_write == nullptr || !in_owner_process() ||
      check_entry(fd, entry) == nullptr) {
    return next.write(fd, data, bytes);
  }
  return watch->on_write(entry->context, data, bytes);
}

void tell_before_read(int fd, FdEntry* entry) {
  const rocemu_fd_watch* watch = entry->watch.load(std::memory_order_acquire);
  if (watch == nullptr || watch->before_read == nullptr || !in_owner_process() ||
      check_entry(fd, entry) == nullptr) {
    return;
  }
  watch->before_read(entry->context, fd);
}

__attribute__((noinline)) ssize_t read_noted(int fd, FdEntry* entry, void* data, size_t bytes) {
  tell_before_read(fd, entry);
  const ssize_t got = real().read(fd, data, bytes);
  if (got != 0 || bytes == 0) return got;
  const rocemu_fd_watch* watch = entry->watch.load(std::memory_order_acquire);
  if (watch == nullptr || watch->on_end == nullptr || !in_owner_process() ||
      check_entry(fd, entry) == nullptr) {
    return got;
  }
  return watch->on_end(entry->context, data, bytes);
}

}  // namespace

ROCEMU_EXPORT ssize_t read(int fd, void* data, size_t bytes) {
  FdEntry* entry = find_entry(fd);
  if (entry != nullptr) [[unlikely]]
    return read_noted(fd, entry, data, bytes);
  return real().read(fd, data, bytes);
}

ROCEMU_EXPORT ssize_t write(int fd, const void* data, size_t bytes) {
  FdEntry* entry = find_entry(fd);
  if (entry != nullptr) [[unlikely]]
    return write_noted(fd, entry, data, bytes);
  return real().write(fd, data, bytes);
}

ROCEMU_EXPORT int close(int fd) {
  FdEntry* entry = find_entry(fd);
  if (entry != nullptr) [[unlikely]]
    before_close(fd, entry);
  return real().close(fd);
}
