// ShownPorts keeps what programs, tools and peers see of the devices' ports up to date: state and
// addresses when they change, counters once a second. Belongs to the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "emulator/daemon/attachment/attachments.h"
#include "emulator/daemon/attachment/gid_directory.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/view/sysfs_tree.h"

namespace rocemu::daemon {

class ShownPorts {
 public:
  // Makes the tree of files in `sysfs`. All others outlive it; the NIC has its faults and its
  // connection manager.
  ShownPorts(boost::asio::io_context& io, Nic& nic, Attachments& attachments, GidDirectory& gids,
             const std::filesystem::path& sysfs);

  // Interfaces and addresses may have changed, and what a program sees of the ports follows them.
  void follow_network();
  // Faults may have changed what is seen of the port.
  void show(uint32_t device);
  // Again and again from now on.
  void refresh_counters();

 private:
  void leave_groups(const EngineSnapshot& snapshot);
  void write_counters(const EngineSnapshot& snapshot);

  boost::asio::io_context& io_;
  Nic& nic_;
  Attachments& attachments_;
  GidDirectory& gids_;
  SysfsTree sysfs_;
  std::vector<device::PortConfig> ports_;  // by device, as they are without faults
  boost::asio::steady_timer counter_timer_;
};

// The state of a port, as text for the log.
std::string describe_port_state(const device::PortConfig& port);

}  // namespace rocemu::daemon
