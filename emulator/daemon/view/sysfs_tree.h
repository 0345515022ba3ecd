// The files that programs and libraries read instead of /sys: STATE_DIR/sys.
//
//   class/infiniband/DEV, class/infiniband_verbs/uverbsN, class/net/IF    links, as in sysfs
//   devices/pciDDDD:00/DDDD:00:NN.0/…                                     what they point to
//
// Names and formats are those of the kernel's RDMA sysfs (Documentation/ABI/stable/sysfs-class-
// infiniband) and of its PCI devices. The PCI domain is one no machine has, so that topology code
// does not take a NIC of ours for a device of the host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "emulator/daemon/view/sysfs_counters.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

class SysfsTree {
 public:
  // Makes `root`, and replaces one that is there already. Throws std::runtime_error with a message
  // for the user (std::filesystem::filesystem_error is one).
  SysfsTree(std::filesystem::path root, const std::vector<device::HcaConfig>& devices);
  ~SysfsTree();  // removes it
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;

  // Brings what may change of a port up to date: state, GIDs, the interface behind it.
  void write_port(const device::HcaConfig& device) const;

  // Writes those of counters/ and hw_counters/ of a device that have changed since the last time.
  void write_counters(const device::HcaConfig& device, const PortCounts& counts);

 private:
  struct Shown {
    NamedCounters counters;
    NamedCounters hw_counters;
  };

  std::filesystem::path root_;
  std::unordered_map<uint32_t, Shown> shown_;  // as of the last write, by device
};

}  // namespace rocemu::daemon
