// Where the processor does not say how fast its cycle counter is, as in most virtual machines, DPDK
// sleeps for a tenth of a second to find out, which is half of the time that a NIC takes to start.
// Only delays of drivers of physical devices depend on that. While a ShortCalibration lives a sleep
// of this process lasts some milliseconds at most.
//
// It does so by this library's definition of nanosleep, which the dynamic linker prefers over
// libc's. At all other times that is the plain system call.
#pragma once

namespace rocemu::dpdk_io {

class ShortCalibration {
 public:
  explicit ShortCalibration(bool wanted);
  ~ShortCalibration();

  ShortCalibration(const ShortCalibration&) = delete;
  ShortCalibration& operator=(const ShortCalibration&) = delete;
};

}  // namespace rocemu::dpdk_io
