#include "verbs_shim/preload/fitness.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

// The number of the private ABI of a libibverbs, which is in a version of its private functions; 0
// when there is none.
int private_abi(void* libibverbs) {
  constexpr int kFirst = 10;  // long before those that there are providers for
  constexpr int kLast = 199;
  for (int number = kFirst; number <= kLast; ++number) {
    char version[32];
    snprintf(version, sizeof(version), "IBVERBS_PRIVATE_%d", number);
    if (dlvsym(libibverbs, "verbs_set_ops", version) != nullptr) return number;
  }
  return 0;
}

// The file that `function` was loaded from.
bool file_of(const void* function, char (&path)[PATH_MAX]) {
  Dl_info info;
  return dladdr(function, &info) != 0 && real().realpath(info.dli_fname, path) != nullptr;
}

// True when there is a provider of that number beside this library.
bool is_served(int number, char* own_path) {
  char* name = strrchr(own_path, '/');
  if (name == nullptr) return true;
  char path[PATH_MAX + 32];
  *name = '\0';
  snprintf(path, sizeof(path), "%s/librocemu-rdmav%d.so", own_path, number);
  return real().access(path, R_OK) == 0;
}

void complain_of_libibverbs(void* libibverbs) {
  char own[PATH_MAX];
  char path[PATH_MAX];
  if (!file_of(reinterpret_cast<const void*>(&complain_if_unfit), own)) return;
  if (!file_of(dlsym(libibverbs, "ibv_get_device_list"), path)) return;
  const int number = private_abi(libibverbs);
  if (number != 0 && is_served(number, own)) return;
  dprintf(STDERR_FILENO,
          "rocemu: there is no provider for %s (private ABI %d of rdma-core): `rocemu version "
          "--json` says which are served\n",
          path, number);
}

void look() {
  if (real().access(sysfs_tree(), F_OK) != 0) {
    const char* why = errno == EACCES ? "this user may not see it"
                                      : "it has ended, or its state directory is not mounted here";
    dprintf(STDERR_FILENO, "rocemu: there is no NIC at %.*s: %s\n",
            static_cast<int>(sysfs_tree_length() - strlen("/" ROCEMU_SYSFS_NAME)), sysfs_tree(),
            why);
    return;
  }
  // Of a program without libibverbs nothing is asked.
  void* libibverbs = dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (libibverbs == nullptr) return;
  complain_of_libibverbs(libibverbs);
  dlclose(libibverbs);
}

}  // namespace

void complain_if_unfit() {
  static std::atomic<bool> looked{false};
  if (looked.exchange(true)) return;
  const int saved = errno;
  look();
  errno = saved;
}

}  // namespace rocemu::preload
