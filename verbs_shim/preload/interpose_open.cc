// open, fopen, opendir and scandir in all their spellings.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/fitness.h"
#include "verbs_shim/preload/rdma_cm.h"
#include "verbs_shim/preload/redirect.h"

namespace rocemu::preload {
namespace {

using Open = int (*)(const char*, int, ...);

mode_t mode_argument(int flags, va_list arguments) {
  if ((flags & O_CREAT) == 0 && (flags & O_TMPFILE) != O_TMPFILE) return 0;
  return va_arg(arguments, mode_t);
}

int open_cdev(Open next, int flags, dev_t cdev) {
  const int fd = next(kCdevStandIn, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  if (fd >= 0) note_cdev(fd, cdev);
  return fd;
}

__attribute__((noinline)) int open_resolved(Open next, const char* path, int flags, mode_t mode) {
  Resolved resolved;
  resolve(path, resolved);
  switch (resolved.where) {
    case Where::kCdev:
      return resolved.is_rdma_cm ? open_rdma_cm(flags, resolved.cdev)
                                 : open_cdev(next, flags, resolved.cdev);
    case Where::kNowhere:
      errno = resolved.error;
      return -1;
    default:
      return next(resolved.path, flags, mode);
  }
}

template <typename Stream>
__attribute__((noinline)) Stream* open_stream(const char* path, auto next) {
  Resolved resolved;
  resolve(path, resolved);
  switch (resolved.where) {
    case Where::kCdev:
      return next(kCdevStandIn);
    case Where::kNowhere:
      errno = resolved.error;
      return nullptr;
    default:
      return next(resolved.path);
  }
}

template <typename Scandir, typename Entry, typename Filter, typename Order>
__attribute__((noinline)) int scandir_resolved(Scandir next, const char* path, Entry*** list,
                                               Filter filter, Order order) {
  Resolved resolved;
  resolve(path, resolved);
  switch (resolved.where) {
    case Where::kCdev:
      errno = ENOTDIR;
      return -1;
    case Where::kNowhere:
      errno = resolved.error;
      return -1;
    default:
      return next(resolved.path, list, filter, order);
  }
}

}  // namespace
}  // namespace rocemu::preload

using namespace rocemu::preload;

ROCEMU_EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  const Real& next = real();
  if (!concerns(path)) return next.open(path, flags, mode);
  return open_resolved(next.open, path, flags, mode);
}

ROCEMU_EXPORT int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  const Real& next = real();
  if (!concerns(path)) return next.open64(path, flags, mode);
  return open_resolved(next.open64, path, flags, mode);
}

// An absolute path, the only kind looked at here, makes the directory irrelevant.
ROCEMU_EXPORT int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  const Real& next = real();
  if (!concerns(path)) return next.openat(directory, path, flags, mode);
  return open_resolved(next.open, path, flags, mode);
}

ROCEMU_EXPORT int openat64(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  const Real& next = real();
  if (!concerns(path)) return next.openat64(directory, path, flags, mode);
  return open_resolved(next.open64, path, flags, mode);
}

// Programs built with _FORTIFY_SOURCE call these for open() when no mode is given.
ROCEMU_EXPORT int __open_2(const char* path, int flags) {
  const Real& next = real();
  if (!concerns(path)) return next.open_2(path, flags);
  return open_resolved(next.open, path, flags, 0);
}

ROCEMU_EXPORT int __open64_2(const char* path, int flags) {
  const Real& next = real();
  if (!concerns(path)) return next.open64_2(path, flags);
  return open_resolved(next.open64, path, flags, 0);
}

ROCEMU_EXPORT int __openat_2(int directory, const char* path, int flags) {
  const Real& next = real();
  if (!concerns(path)) return next.openat_2(directory, path, flags);
  return open_resolved(next.open, path, flags, 0);
}

ROCEMU_EXPORT int __openat64_2(int directory, const char* path, int flags) {
  const Real& next = real();
  if (!concerns(path)) return next.openat64_2(directory, path, flags);
  return open_resolved(next.open64, path, flags, 0);
}

ROCEMU_EXPORT FILE* fopen(const char* path, const char* mode) {
  const Real& next = real();
  if (!concerns(path)) return next.fopen(path, mode);
  return open_stream<FILE>(path, [&](const char* to) { return next.fopen(to, mode); });
}

ROCEMU_EXPORT FILE* fopen64(const char* path, const char* mode) {
  const Real& next = real();
  if (!concerns(path)) return next.fopen64(path, mode);
  return open_stream<FILE>(path, [&](const char* to) { return next.fopen64(to, mode); });
}

ROCEMU_EXPORT DIR* opendir(const char* path) {
  const Real& next = real();
  if (!concerns(path)) return next.opendir(path);
  if (strcmp(path, "/sys/class/infiniband_verbs") == 0) complain_if_unfit();  // as libibverbs does
  return open_stream<DIR>(path, next.opendir);
}

ROCEMU_EXPORT int scandir(const char* path, dirent*** list, ScandirFilter filter,
                          ScandirOrder order) {
  const Real& next = real();
  if (!concerns(path)) return next.scandir(path, list, filter, order);
  return scandir_resolved(next.scandir, path, list, filter, order);
}

ROCEMU_EXPORT int scandir64(const char* path, dirent64*** list, Scandir64Filter filter,
                            Scandir64Order order) {
  const Real& next = real();
  if (!concerns(path)) return next.scandir64(path, list, filter, order);
  return scandir_resolved(next.scandir64, path, list, filter, order);
}
