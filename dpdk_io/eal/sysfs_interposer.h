// DPDK does not start where /sys is not mounted (a bare chroot, some sandboxes), and no option of
// it helps: it asks for a file of each CPU (.../cpuN/topology/core_id) to know that the CPU is
// there, and takes a missing /sys/module for an error instead of for "VFIO is not loaded". While a
// SysfsInterposer lives and /sys is missing, those two questions are answered here: the CPUs are
// those of the thread's affinity, and no kernel module is loaded.
//
// The answers are given by this library's definitions of access and stat64, which the dynamic
// linker prefers over libc's. At all other times, and for all other paths, they are the plain
// system calls.
#pragma once

#include <sched.h>

namespace rocemu::dpdk_io {

class SysfsInterposer {
 public:
  // `cpus` must outlive the object; one object at a time.
  explicit SysfsInterposer(const cpu_set_t& cpus);
  ~SysfsInterposer();

  SysfsInterposer(const SysfsInterposer&) = delete;
  SysfsInterposer& operator=(const SysfsInterposer&) = delete;
};

}  // namespace rocemu::dpdk_io
