// The functions of the C library (or of another preloaded library) behind the ones defined here,
// and the state directory that the environment names.
//
// Found at load time; a call that comes earlier, from another library's constructor, finds them
// first. Nothing here allocates.
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>

#define ROCEMU_EXPORT extern "C" __attribute__((visibility("default")))

namespace rocemu::preload {

using ScandirFilter = int (*)(const dirent*);
using ScandirOrder = int (*)(const dirent**, const dirent**);
using Scandir64Filter = int (*)(const dirent64*);
using Scandir64Order = int (*)(const dirent64**, const dirent64**);

struct Real {
  int (*open)(const char*, int, ...);
  int (*open64)(const char*, int, ...);
  int (*openat)(int, const char*, int, ...);
  int (*openat64)(int, const char*, int, ...);
  int (*open_2)(const char*, int);
  int (*open64_2)(const char*, int);
  int (*openat_2)(int, const char*, int);
  int (*openat64_2)(int, const char*, int);
  FILE* (*fopen)(const char*, const char*);
  FILE* (*fopen64)(const char*, const char*);
  DIR* (*opendir)(const char*);
  int (*scandir)(const char*, dirent***, ScandirFilter, ScandirOrder);
  int (*scandir64)(const char*, dirent64***, Scandir64Filter, Scandir64Order);
  int (*stat)(const char*, struct stat*);
  int (*stat64)(const char*, struct stat64*);
  int (*lstat)(const char*, struct stat*);
  int (*lstat64)(const char*, struct stat64*);
  int (*fstat)(int, struct stat*);
  int (*fstat64)(int, struct stat64*);
  int (*fstatat)(int, const char*, struct stat*, int);
  int (*fstatat64)(int, const char*, struct stat64*, int);
  int (*statx)(int, const char*, int, unsigned, struct statx*);
  int (*access)(const char*, int);
  int (*faccessat)(int, const char*, int, int);
  ssize_t (*readlink)(const char*, char*, size_t);
  ssize_t (*readlinkat)(int, const char*, char*, size_t);
  char* (*realpath)(const char*, char*);
  char* (*realpath_chk)(const char*, char*, size_t);
  ssize_t (*getxattr)(const char*, const char*, void*, size_t);
  ssize_t (*lgetxattr)(const char*, const char*, void*, size_t);
  ssize_t (*read)(int, void*, size_t);
  ssize_t (*write)(int, const void*, size_t);
  int (*close)(int);
  int (*socket)(int, int, int);
  int (*bind)(int, const sockaddr*, socklen_t);
  int (*getsockname)(int, sockaddr*, socklen_t*);
  int (*setsockopt)(int, int, int, const void*, socklen_t);
  ssize_t (*send)(int, const void*, size_t, int);
  ssize_t (*sendto)(int, const void*, size_t, int, const sockaddr*, socklen_t);
  ssize_t (*sendmsg)(int, const msghdr*, int);
  ssize_t (*recv)(int, void*, size_t, int);
  ssize_t (*recvfrom)(int, void*, size_t, int, sockaddr*, socklen_t*);
  ssize_t (*recvmsg)(int, msghdr*, int);
  int (*ioctl)(int, unsigned long, ...);
  int (*madvise)(void*, size_t, int);
};

namespace detail {
extern std::atomic<bool> ready;
extern Real functions;
extern char directory[];
extern size_t directory_length;
extern bool shares_memory;
void initialise();
}  // namespace detail

inline const Real& real() {
  if (!detail::ready.load(std::memory_order_acquire)) [[unlikely]]
    detail::initialise();
  return detail::functions;
}

// True when ROCEMU_DIR is set: without it every function here hands the call through. To be asked
// after real().
inline bool active() { return detail::directory_length != 0; }

// True when registered memory may have become a shared region (ROCEMU_SHARE_MEMORY=1, and
// active()).
inline bool shares_memory() { return detail::shares_memory; }

// $ROCEMU_DIR/sys, and its length.
inline const char* sysfs_tree() { return detail::directory; }
inline size_t sysfs_tree_length() { return detail::directory_length; }

}  // namespace rocemu::preload
