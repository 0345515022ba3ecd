// Attachment is a device's port on a network beyond the NIC: it carries the device's frames, knows
// the port's state and addresses, and finds who is behind an address there.
#pragma once

#include <functional>
#include <memory>

#include "dpdk_io/port/multicast_groups.h"
#include "dpdk_io/port/uplink_port.h"
#include "emulator/daemon/attachment/learned_addresses.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

// Only the control thread uses it, but for port(), learned() and follow(), which are for the engine
// thread.
class Attachment {
 public:
  virtual ~Attachment() = default;

  dpdk_io::UplinkPort& port() { return *port_; }
  LearnedAddresses& learned() { return learned_; }

  // nullptr for a port that does not have to be told of multicast groups.
  virtual dpdk_io::MulticastGroups* groups() { return nullptr; }

  // The number of frames of the largest size that the receiving side holds for sure. A peer of the
  // same kind may have so many under way without loss.
  unsigned window_packets() const { return window_packets_; }

  // Returns the port as it is now. `before` is what it was; the first time that is the device's
  // name and nothing else. Throws std::system_error when the state cannot be found out.
  virtual device::PortConfig describe(const device::PortConfig& before) = 0;

  // Makes the port behave as `port` says. To be called on the engine thread, or before it starts.
  virtual void follow(const device::PortConfig& port) noexcept {
    port_->set_mac(port.mac);
    port_->set_running(port.active);
  }

  struct Answer {
    enum class Kind { found, not_yet, unreachable };
    Kind kind = Kind::unreachable;
    MacAddress mac{};
  };
  using Answered = std::function<void(const Answer&)>;
  // Finds where frames for `destination` go, as far as is known; `port` is the device's current
  // state. Calls `answered` once on the control thread, at once or later.
  virtual void find(const device::PortConfig& port, const wire::Gid& destination,
                    Answered answered) = 0;
  // To be called after not_yet: starts ARP or neighbour discovery where find() has not.
  virtual void begin_to_ask(const wire::Gid& /*destination*/) {}

 protected:
  std::unique_ptr<dpdk_io::UplinkPort> port_;
  unsigned window_packets_ = 0;

 private:
  LearnedAddresses learned_;
};

}  // namespace rocemu::daemon
