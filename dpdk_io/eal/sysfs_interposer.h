// What DPDK asks the file system for while it starts, and what is answered here instead, while a
// SysfsInterposer lives.
//
// Where /sys is not mounted (a bare chroot, some sandboxes) DPDK does not start, and no option of
// it helps: it asks for a file of each CPU (.../cpuN/topology/core_id) to know that the CPU is
// there, and takes a missing /sys/module for an error instead of for "VFIO is not loaded". The CPUs
// are those of the thread's affinity then, and no kernel module is loaded.
//
// It asks for a thousand CPUs, and on which of 32 NUMA nodes each of 128 is: 5,000 system calls.
// CPUs that the machine has not are not there.
//
// It loads all drivers of its folder, some 130 libraries, whether a device is asked for or not.
// Where none is, there is no such folder.
//
// The answers are given by this library's definitions of access and stat64, which the dynamic
// linker prefers over libc's. At all other times, and for all other paths, they are the plain
// system calls.
#pragma once

#include <sched.h>

namespace rocemu::dpdk_io {

class SysfsInterposer {
 public:
  // `cpus`: the thread's affinity, which must outlive the object. One object at a time.
  SysfsInterposer(const cpu_set_t& cpus, bool loads_drivers);
  ~SysfsInterposer();

  SysfsInterposer(const SysfsInterposer&) = delete;
  SysfsInterposer& operator=(const SysfsInterposer&) = delete;
};

}  // namespace rocemu::dpdk_io
