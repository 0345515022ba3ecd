#include "verbs_shim/preload/real.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/old_stat.h"

namespace rocemu::preload {

namespace detail {

std::atomic<bool> ready{false};
Real functions;
char directory[PATH_MAX];
size_t directory_length;
bool shares_memory;

namespace {

template <typename Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void read_environment() {
  constexpr char kTail[] = "/" ROCEMU_SYSFS_NAME;
  const char* value = secure_getenv(ROCEMU_ENV_DIR);
  if (value == nullptr || value[0] != '/') return;
  size_t length = strlen(value);
  while (length > 1 && value[length - 1] == '/') --length;
  if (length + sizeof(kTail) > sizeof(directory)) return;
  memcpy(directory, value, length);
  memcpy(directory + length, kTail, sizeof(kTail));
  directory_length = length + sizeof(kTail) - 1;
  const char* share = secure_getenv(ROCEMU_ENV_SHARE_MEMORY);
  shares_memory = share != nullptr && strcmp(share, "1") == 0;
}

}  // namespace

// Two threads may both come here before main(): they write the same values.
void initialise() {
  find(functions.open, "open");
  find(functions.open64, "open64");
  find(functions.openat, "openat");
  find(functions.openat64, "openat64");
  find(functions.open_2, "__open_2");
  find(functions.open64_2, "__open64_2");
  find(functions.openat_2, "__openat_2");
  find(functions.openat64_2, "__openat64_2");
  find(functions.fopen, "fopen");
  find(functions.fopen64, "fopen64");
  find(functions.opendir, "opendir");
  find(functions.scandir, "scandir");
  find(functions.scandir64, "scandir64");
  find(functions.stat, "stat");
  find(functions.stat64, "stat64");
  find(functions.lstat, "lstat");
  find(functions.lstat64, "lstat64");
  find(functions.fstat, "fstat");
  find(functions.fstat64, "fstat64");
  find(functions.fstatat, "fstatat");
  find(functions.fstatat64, "fstatat64");
  find(functions.statx, "statx");
  find(functions.access, "access");
  find(functions.faccessat, "faccessat");
  find(functions.readlink, "readlink");
  find(functions.readlinkat, "readlinkat");
  find(functions.realpath, "realpath");
  find(functions.realpath_chk, "__realpath_chk");
  find(functions.getxattr, "getxattr");
  find(functions.lgetxattr, "lgetxattr");
  find(functions.read, "read");
  find(functions.write, "write");
  find(functions.close, "close");
  find(functions.socket, "socket");
  find(functions.bind, "bind");
  find(functions.getsockname, "getsockname");
  find(functions.setsockopt, "setsockopt");
  find(functions.send, "send");
  find(functions.sendto, "sendto");
  find(functions.sendmsg, "sendmsg");
  find(functions.recv, "recv");
  find(functions.recvfrom, "recvfrom");
  find(functions.recvmsg, "recvmsg");
  find(functions.ioctl, "ioctl");
  find(functions.madvise, "madvise");
  if (functions.stat == nullptr) use_old_stat(functions);
  read_environment();
  ready.store(true, std::memory_order_release);
}

}  // namespace detail

namespace {

__attribute__((constructor)) void on_load() {
  real();
  if (active()) watch_forks();
}

}  // namespace

}  // namespace rocemu::preload
