// KernelAttachment is a port on the machine's own network: an interface, or UDP sockets. The kernel
// knows its addresses, its state and its neighbours.
#pragma once

#include <optional>

#include "dpdk_io/kernel/group_memberships.h"
#include "dpdk_io/kernel/interface_port.h"
#include "dpdk_io/kernel/kernel_network.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/spec/port_spec.h"
#include "emulator/daemon/attachment/attachment.h"

namespace rocemu::daemon {

class KernelAttachment final : public Attachment {
 public:
  // `spec` is of one of these kinds, `number` is the device's index; `network` and `pool` outlive
  // the attachment. Throws std::runtime_error with a message for the user.
  KernelAttachment(const dpdk_io::PortSpec& spec, unsigned number, dpdk_io::KernelNetwork& network,
                   dpdk_io::FramePool& pool);

  dpdk_io::MulticastGroups* groups() override { return memberships_ ? &*memberships_ : nullptr; }
  device::PortConfig describe(const device::PortConfig& before) override;
  void follow(const device::PortConfig& port) noexcept override;
  void find(const device::PortConfig& port, const wire::Gid& destination,
            Answered answered) override;
  void begin_to_ask(const wire::Gid& destination) override;

 private:
  void open_interface(unsigned number, dpdk_io::FramePool& pool);
  void open_sockets(unsigned number, dpdk_io::FramePool& pool);
  std::optional<dpdk_io::KernelInterface> interface_with(const IpAddress& address);
  Answer look_up(const device::PortConfig& port, const wire::Gid& destination);

  dpdk_io::PortSpec spec_;
  dpdk_io::KernelNetwork& network_;
  unsigned interface_index_ = 0;                          // an interface port's
  std::optional<dpdk_io::GroupMemberships> memberships_;  // an interface port's
  dpdk_io::InterfacePort* interface_port_ = nullptr;      // owned by port_
};

}  // namespace rocemu::daemon
