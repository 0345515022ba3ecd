// Attachments holds the ports of those devices that are on a network beyond the NIC, and what it
// takes to run them: the kernel's network, path finders, and watches that tell of changes. Devices
// on the in-process switch have none. Only the control thread uses it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dpdk_io/kernel/kernel_network.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/spec/port_spec.h"
#include "emulator/daemon/attachment/attachment.h"
#include "emulator/daemon/attachment/ethdev_attachment.h"
#include "emulator/daemon/attachment/link_watch.h"
#include "emulator/daemon/attachment/network_watch.h"
#include "emulator/daemon/attachment/path_finder.h"
#include "emulator/daemon/engine/engine.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

class Attachments {
 public:
  // For `devices` devices. All that is given outlives this object but for the engine, which is
  // stopped before it goes.
  Attachments(boost::asio::io_context& io, Engine& engine, dpdk_io::FramePool& pool,
              uint32_t devices)
      : io_(io), engine_(engine), pool_(pool), attachments_(devices), path_finders_(devices) {}

  // Gives `device`, which outlives this object, the port that `spec` describes, and changes its
  // configuration to that port's identity. To be called before the engine starts. Throws
  // std::exception with a message for the user.
  Attachment& attach(const dpdk_io::PortSpec& spec, device::HcaConfig& device);

  // Both are nullptr for a device on the in-process switch.
  Attachment* of(uint32_t device) const { return attachments_[device].get(); }
  PathFinder* path_finder(uint32_t device) const { return path_finders_[device].get(); }

  // Calls changed() on the io_context's thread whenever something that Attachment::describe() tells
  // may have changed.
  void watch(const std::function<void()>& changed);

 private:
  std::unique_ptr<Attachment> open(const dpdk_io::PortSpec& spec, const device::HcaConfig& device);

  boost::asio::io_context& io_;
  Engine& engine_;
  dpdk_io::FramePool& pool_;
  std::unique_ptr<dpdk_io::KernelNetwork> network_;        // nullptr: no port is on it
  std::vector<std::unique_ptr<Attachment>> attachments_;   // by device
  std::vector<std::unique_ptr<PathFinder>> path_finders_;  // by device
  std::vector<EthdevAttachment*> ethdevs_;  // the ports of DPDK's devices in attachments_
  std::unique_ptr<NetworkWatch> network_watch_;
  std::unique_ptr<LinkWatch> link_watch_;
};

}  // namespace rocemu::daemon
