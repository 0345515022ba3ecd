// A device's port on the machine's network: what carries its frames, what the kernel says of it,
// and who is behind an address there.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dpdk_io/frame_pool.h"
#include "dpdk_io/group_memberships.h"
#include "dpdk_io/interface_port.h"
#include "dpdk_io/kernel_network.h"
#include "dpdk_io/port_spec.h"
#include "dpdk_io/uplink_port.h"
#include "emulator/daemon/learned_addresses.h"
#include "emulator/device/attributes.h"

namespace rocemu::daemon {

// The control thread's, except for port(), learned() and follow(), which are the engine's.
class Attachment {
 public:
  // `number` is the device's; `network` and `pool` outlive the attachment. Throws
  // std::runtime_error with a message for the user.
  Attachment(const dpdk_io::PortSpec& spec, unsigned number, dpdk_io::KernelNetwork& network,
             dpdk_io::FramePool& pool);

  dpdk_io::UplinkPort& port() { return *port_; }
  LearnedAddresses& learned() { return learned_; }

  // Of an interface port; nullptr: groups are nothing to this port.
  dpdk_io::GroupMemberships* memberships() { return memberships_ ? &*memberships_ : nullptr; }

  // How many frames of the largest size the receiving side holds for sure: what a peer of the same
  // kind may have under way without loss.
  unsigned window_packets() const { return window_packets_; }

  // As the kernel has it now. `before` is what it was, to begin with the device's name and nothing
  // else. Throws std::system_error when the kernel does not answer.
  device::PortConfig describe(const device::PortConfig& before);

  // Has the port behave as `port` is now. The engine's, or before it starts.
  void follow(const device::PortConfig& port) noexcept;

  struct Answer {
    enum class Kind { found, not_yet, unreachable };
    Kind kind = Kind::unreachable;
    wire::MacAddress mac{};
  };
  // Where frames for `destination` go, as far as the kernel knows; `port` is the device's now.
  Answer find(const device::PortConfig& port, const wire::Gid& destination);
  // After not_yet: has the kernel find out.
  void make_kernel_resolve(const wire::Gid& destination);

 private:
  void open_interface(unsigned number, dpdk_io::FramePool& pool);
  void open_sockets(unsigned number, dpdk_io::FramePool& pool);
  std::optional<dpdk_io::KernelInterface> interface_with(const dpdk_io::IpAddress& address);

  dpdk_io::PortSpec spec_;
  dpdk_io::KernelNetwork& network_;
  unsigned interface_index_ = 0;  // of an interface port
  std::optional<dpdk_io::GroupMemberships> memberships_;
  dpdk_io::InterfacePort* interface_port_ = nullptr;  // in port_
  unsigned window_packets_ = 0;
  std::unique_ptr<dpdk_io::UplinkPort> port_;
  LearnedAddresses learned_;
};

}  // namespace rocemu::daemon
