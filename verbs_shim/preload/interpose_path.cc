// access, readlink, realpath and getxattr (of which ls -l makes use) in all their spellings.
// Answers name paths below /sys, as the program would see them on a machine that has the device.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_shim/preload/redirect.h"

namespace rocemu::preload {
namespace {

__attribute__((noinline)) int access_resolved(const char* path, int mode, auto next) {
  Resolved resolved;
  resolve(path, resolved);
  switch (resolved.where) {
    case Where::kCdev:
      if ((mode & X_OK) == 0) return 0;
      errno = EACCES;
      return -1;
    case Where::kNowhere:
      errno = resolved.error;
      return -1;
    default:
      return next(resolved.path);
  }
}

__attribute__((noinline)) ssize_t readlink_resolved(const char* path, char* out, size_t bytes,
                                                    auto next) {
  Resolved resolved;
  resolve(path, resolved);
  if (resolved.where == Where::kAsGiven) return next(path, out, bytes);
  if (resolved.where != Where::kTree) {
    errno = resolved.where == Where::kCdev ? EINVAL : resolved.error;
    return -1;
  }
  char target[PATH_MAX];
  const ssize_t length = next(resolved.path, target, sizeof(target) - 1);
  if (length < 0) return length;
  target[length] = '\0';
  if (target[0] == '/') name_as_sysfs(target);
  const size_t used = strnlen(target, bytes);
  memcpy(out, target, used);
  return static_cast<ssize_t>(used);
}

__attribute__((noinline)) char* realpath_resolved(const char* path, char* out) {
  Resolved resolved;
  resolve(path, resolved);
  const Real& next = real();
  if (resolved.where == Where::kNowhere) {
    errno = resolved.error;
    return nullptr;
  }
  if (resolved.where != Where::kCdev) {
    char* result = next.realpath(resolved.path, out);
    if (result != nullptr && resolved.where == Where::kTree) name_as_sysfs(result);
    return result;
  }
  if (out == nullptr) return strdup(path);
  return strcpy(out, path);
}

__attribute__((noinline)) ssize_t getxattr_resolved(const char* path, auto next) {
  Resolved resolved;
  resolve(path, resolved);
  if (resolved.where == Where::kCdev || resolved.where == Where::kNowhere) {
    errno = resolved.where == Where::kCdev ? ENODATA : resolved.error;
    return -1;
  }
  return next(resolved.path);
}

}  // namespace
}  // namespace rocemu::preload

using namespace rocemu::preload;

ROCEMU_EXPORT int access(const char* path, int mode) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.access(path, mode);
  return access_resolved(path, mode, [&](const char* to) { return next.access(to, mode); });
}

ROCEMU_EXPORT int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.faccessat(directory, path, mode, flags);
  return access_resolved(path, mode,
                         [&](const char* to) { return next.faccessat(AT_FDCWD, to, mode, flags); });
}

ROCEMU_EXPORT ssize_t readlink(const char* path, char* out, size_t bytes) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.readlink(path, out, bytes);
  return readlink_resolved(path, out, bytes, next.readlink);
}

ROCEMU_EXPORT ssize_t readlinkat(int directory, const char* path, char* out,
                                 size_t bytes) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.readlinkat(directory, path, out, bytes);
  return readlink_resolved(path, out, bytes, next.readlink);
}

// The checked spellings know the size of the caller's buffer; so do the plain ones' arguments.
ROCEMU_EXPORT ssize_t __readlink_chk(const char* path, char* out, size_t bytes, size_t room) {
  if (bytes > room) abort();
  return readlink(path, out, bytes);
}

ROCEMU_EXPORT ssize_t __readlinkat_chk(int directory, const char* path, char* out, size_t bytes,
                                       size_t room) {
  if (bytes > room) abort();
  return readlinkat(directory, path, out, bytes);
}

ROCEMU_EXPORT char* realpath(const char* path, char* out) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.realpath(path, out);
  return realpath_resolved(path, out);
}

ROCEMU_EXPORT char* __realpath_chk(const char* path, char* out, size_t room) {
  const Real& next = real();
  if (!concerns(path) || room < PATH_MAX) return next.realpath_chk(path, out, room);
  return realpath_resolved(path, out);
}

ROCEMU_EXPORT char* canonicalize_file_name(const char* path) noexcept {
  return realpath(path, nullptr);
}

ROCEMU_EXPORT ssize_t getxattr(const char* path, const char* name, void* out,
                               size_t bytes) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.getxattr(path, name, out, bytes);
  return getxattr_resolved(path,
                           [&](const char* to) { return next.getxattr(to, name, out, bytes); });
}

ROCEMU_EXPORT ssize_t lgetxattr(const char* path, const char* name, void* out,
                                size_t bytes) noexcept {
  const Real& next = real();
  if (!concerns(path)) return next.lgetxattr(path, name, out, bytes);
  return getxattr_resolved(path,
                           [&](const char* to) { return next.lgetxattr(to, name, out, bytes); });
}
