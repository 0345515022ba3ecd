#include "verbs_shim/preload/old_stat.h"

#include <dlfcn.h>

namespace rocemu::preload {
namespace {

// struct stat and struct stat64 are the same on machines of 64 bits, and so are the functions.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

// The version of struct stat that these functions are asked for: _STAT_VER of bits/stat.h before
// glibc 2.33.
#if defined(__x86_64__)
constexpr int kVersion = 1;
#else
constexpr int kVersion = 0;
#endif

int (*xstat)(int, const char*, void*);
int (*lxstat)(int, const char*, void*);
int (*fxstat)(int, int, void*);
int (*fxstatat)(int, int, const char*, void*, int);

template <typename Out>
int old_stat(const char* path, Out* out) {
  return xstat(kVersion, path, out);
}
template <typename Out>
int old_lstat(const char* path, Out* out) {
  return lxstat(kVersion, path, out);
}
template <typename Out>
int old_fstat(int fd, Out* out) {
  return fxstat(kVersion, fd, out);
}
template <typename Out>
int old_fstatat(int directory, const char* path, Out* out, int flags) {
  return fxstatat(kVersion, directory, path, out, flags);
}

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <typename Function>
void use(Function& function, Function old) {
  if (function == nullptr) function = old;
}

}  // namespace

void use_old_stat(Real& functions) {
  find(xstat, "__xstat");
  find(lxstat, "__lxstat");
  find(fxstat, "__fxstat");
  find(fxstatat, "__fxstatat");
  use(functions.stat, &old_stat<struct stat>);
  use(functions.stat64, &old_stat<struct stat64>);
  use(functions.lstat, &old_lstat<struct stat>);
  use(functions.lstat64, &old_lstat<struct stat64>);
  use(functions.fstat, &old_fstat<struct stat>);
  use(functions.fstat64, &old_fstat<struct stat64>);
  use(functions.fstatat, &old_fstatat<struct stat>);
  use(functions.fstatat64, &old_fstatat<struct stat64>);
}

}  // namespace rocemu::preload
