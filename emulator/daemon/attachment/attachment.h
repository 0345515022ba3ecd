// A device's port on a network beyond the NIC: what carries its frames, what is known of it, and
// who is behind an address there.
#pragma once

#include <functional>
#include <memory>

#include "dpdk_io/port/multicast_groups.h"
#include "dpdk_io/port/uplink_port.h"
#include "emulator/daemon/attachment/learned_addresses.h"
#include "emulator/device/attributes.h"

namespace rocemu::daemon {

// The control thread's, except for port(), learned() and follow(), which are the engine's.
class Attachment {
 public:
  virtual ~Attachment() = default;

  dpdk_io::UplinkPort& port() { return *port_; }
  LearnedAddresses& learned() { return learned_; }

  // nullptr: groups are nothing to this port.
  virtual dpdk_io::MulticastGroups* groups() { return nullptr; }

  // How many frames of the largest size the receiving side holds for sure: what a peer of the same
  // kind may have under way without loss.
  unsigned window_packets() const { return window_packets_; }

  // As it is now. `before` is what it was, to begin with the device's name and nothing else. Throws
  // std::system_error when that cannot be found out.
  virtual device::PortConfig describe(const device::PortConfig& before) = 0;

  // Has the port behave as `port` is now. The engine's, or before it starts.
  virtual void follow(const device::PortConfig& port) noexcept {
    port_->set_mac(port.mac);
    port_->set_running(port.active);
  }

  struct Answer {
    enum class Kind { found, not_yet, unreachable };
    Kind kind = Kind::unreachable;
    wire::MacAddress mac{};
  };
  using Answered = std::function<void(const Answer&)>;
  // Where frames for `destination` go, as far as is known; `port` is the device's now. Called back
  // once on the control thread, at once or later.
  virtual void find(const device::PortConfig& port, const wire::Gid& destination,
                    Answered answered) = 0;
  // After not_yet: has it found out.
  virtual void begin_to_ask(const wire::Gid& /*destination*/) {}

 protected:
  std::unique_ptr<dpdk_io::UplinkPort> port_;
  unsigned window_packets_ = 0;

 private:
  LearnedAddresses learned_;
};

}  // namespace rocemu::daemon
