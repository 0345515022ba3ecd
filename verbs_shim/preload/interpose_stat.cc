// stat in all its spellings. A device node is described as /dev/null is, with the device's number.
#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/redirect.h"
#include "verbs_shim/preload/ticket.h"

namespace rocemu::preload {
namespace {

constexpr mode_t kCdevMode = S_IFCHR | 0666;

void describe_cdev(dev_t cdev, auto* out) {
  out->st_mode = kCdevMode;
  out->st_rdev = cdev;
}

void describe_cdev(dev_t cdev, struct statx* out) {
  out->stx_mode = kCdevMode;
  out->stx_rdev_major = major(cdev);
  out->stx_rdev_minor = minor(cdev);
}

// `next` takes the path to look at.
template <typename Out>
__attribute__((noinline)) int stat_resolved(const char* path, Out* out, auto next) {
  Resolved resolved;
  resolve(path, resolved);
  switch (resolved.where) {
    case Where::kCdev: {
      const int result = next(kCdevStandIn);
      if (result == 0) describe_cdev(resolved.cdev, out);
      return result;
    }
    case Where::kNowhere:
      errno = resolved.error;
      return -1;
    default:
      return next(resolved.path);
  }
}

template <typename Out>
int fstat_entry(int (*next)(int, Out*), int fd, Out* out) {
  const int result = next(fd, out);
  if (result != 0) return result;
  dev_t cdev;
  if (active() && is_ticket(fd, *out, cdev)) {
    describe_cdev(cdev, out);
    return result;
  }
  FdEntry* entry = find_entry(fd);
  if (entry == nullptr || !entry->is_cdev) return result;
  if (out->st_dev == entry->file_device && out->st_ino == entry->file_inode) {
    describe_cdev(entry->cdev, out);
  }
  return result;
}

}  // namespace
}  // namespace rocemu::preload

using namespace rocemu::preload;

ROCEMU_EXPORT int stat(const char* path, struct stat* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.stat(path, out);
  return stat_resolved(path, out, [&](const char* to) { return next.stat(to, out); });
}

ROCEMU_EXPORT int stat64(const char* path, struct stat64* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.stat64(path, out);
  return stat_resolved(path, out, [&](const char* to) { return next.stat64(to, out); });
}

ROCEMU_EXPORT int lstat(const char* path, struct stat* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.lstat(path, out);
  return stat_resolved(path, out, [&](const char* to) { return next.lstat(to, out); });
}

ROCEMU_EXPORT int lstat64(const char* path, struct stat64* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.lstat64(path, out);
  return stat_resolved(path, out, [&](const char* to) { return next.lstat64(to, out); });
}

ROCEMU_EXPORT int fstat(int fd, struct stat* out) noexcept {
  return fstat_entry(real().fstat, fd, out);
}

ROCEMU_EXPORT int fstat64(int fd, struct stat64* out) noexcept {
  return fstat_entry(real().fstat64, fd, out);
}

ROCEMU_EXPORT int fstatat(int directory, const char* path, struct stat* out, int flags) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.fstatat(directory, path, out, flags);
  return stat_resolved(path, out,
                       [&](const char* to) { return next.fstatat(AT_FDCWD, to, out, flags); });
}

ROCEMU_EXPORT int fstatat64(int directory, const char* path, struct stat64* out,
                            int flags) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.fstatat64(directory, path, out, flags);
  return stat_resolved(path, out,
                       [&](const char* to) { return next.fstatat64(AT_FDCWD, to, out, flags); });
}

ROCEMU_EXPORT int statx(int directory, const char* path, int flags, unsigned mask,
                        struct statx* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.statx(directory, path, flags, mask, out);
  return stat_resolved(path, out,
                       [&](const char* to) { return next.statx(AT_FDCWD, to, flags, mask, out); });
}

// Programs linked before glibc 2.33 call these for stat() and its like; the version argument has
// one value on 64-bit machines.
ROCEMU_EXPORT int __xstat(int, const char* path, struct stat* out) { return stat(path, out); }
ROCEMU_EXPORT int __xstat64(int, const char* path, struct stat64* out) { return stat64(path, out); }
ROCEMU_EXPORT int __lxstat(int, const char* path, struct stat* out) { return lstat(path, out); }
ROCEMU_EXPORT int __lxstat64(int, const char* path, struct stat64* out) {
  return lstat64(path, out);
}
ROCEMU_EXPORT int __fxstat(int, int fd, struct stat* out) { return fstat(fd, out); }
ROCEMU_EXPORT int __fxstat64(int, int fd, struct stat64* out) { return fstat64(fd, out); }
ROCEMU_EXPORT int __fxstatat(int, int directory, const char* path, struct stat* out, int flags) {
  return fstatat(directory, path, out, flags);
}
ROCEMU_EXPORT int __fxstatat64(int, int directory, const char* path, struct stat64* out,
                               int flags) {
  return fstatat64(directory, path, out, flags);
}
