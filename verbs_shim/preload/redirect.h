// Knows which path stands for which:
//
//   /sys/class/infiniband*       always the NIC's tree: a host's own RDMA devices are hidden
//   /sys/ANYTHING else           the host's; what the host lacks and the NIC's tree has, from there
//   /dev/infiniband              the NIC's class/infiniband_verbs, which lists the device names
//   /dev/infiniband/uverbsN      a character device, if the tree has uverbsN
//   /dev/infiniband/rdma_cm      a character device, which rdma_cm.h serves
//   /dev/infiniband/ANYTHING     does not exist
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "verbs_shim/preload/real.h"

namespace rocemu::preload {

enum class Where {
  kAsGiven,
  kTree,     // at Resolved::path
  kCdev,     // a device node with the number Resolved::cdev
  kNowhere,  // fails with Resolved::error
};

struct Resolved {
  Where where = Where::kAsGiven;
  int error = 0;
  dev_t cdev = 0;
  bool is_rdma_cm = false;  // the device is librdmacm's
  const char* path;         // the path to use, or the one to name in a result for kCdev
  char buffer[PATH_MAX];
};

// True when `path` has to be looked at more closely. Costs a comparison or two, as it runs for
// every path the program opens.
inline bool concerns(const char* path) {
  return active() && path != nullptr && path[0] == '/' &&
         (path[1] == 's' || path[1] == 'd' || path[1] == '/' || path[1] == '.');
}

// Keeps errno.
void resolve(const char* path, Resolved& resolved);

// Turns a path in the NIC's tree, as a system call answered it, back to one below /sys, in place.
void name_as_sysfs(char* path);

inline constexpr char kCdevStandIn[] = "/dev/null";

}  // namespace rocemu::preload
