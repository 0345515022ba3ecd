// KernelNetwork asks the kernel by rtnetlink(7) for its network interfaces, addresses, routes and
// neighbours, and hears when they change. Everything is of the network namespace in which the
// object was made. The calls do not wait for the network; each costs some system calls.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/ip_address.h"
#include "dpdk_io/ip_host/ip_settings.h"

struct mnl_socket;

namespace rocemu::dpdk_io {

struct KernelInterface {
  unsigned index = 0;
  std::string name;
  std::array<uint8_t, 6> mac{};  // zero when it is no Ethernet interface
  bool ethernet = false;
  bool loopback = false;
  unsigned mtu_bytes = 0;
  bool enabled = false;  // "ip link set up"
  bool running = false;  // and there is a carrier
  // In the kernel's order; without IPv6 addresses whose uniqueness is still being found out.
  std::vector<LinkAddress> addresses;
};

struct NextHop {
  unsigned interface_index = 0;
  IpAddress address;   // the destination itself when it is on the link
  bool local = false;  // an address of this machine
};

struct Neighbour {
  enum class State { unknown, resolving, known, failed };
  State state = State::unknown;
  std::array<uint8_t, 6> mac{};  // when known
};

// Not thread safe.
class KernelNetwork {
 public:
  KernelNetwork();  // throws std::system_error
  ~KernelNetwork();
  KernelNetwork(const KernelNetwork&) = delete;
  KernelNetwork& operator=(const KernelNetwork&) = delete;

  // Empty when there is none. Throw std::system_error when the kernel cannot be asked.
  std::optional<KernelInterface> interface_named(const std::string& name);
  std::optional<KernelInterface> interface_at(unsigned index);
  std::optional<KernelInterface> interface_with(const IpAddress& address);

  // The way to `destination`; through the interface `index` unless that is 0. Empty: no route.
  std::optional<NextHop> route(const IpAddress& destination, unsigned index) noexcept;
  Neighbour neighbour(unsigned index, const IpAddress& address) noexcept;
  // Has the kernel find out who has `destination`: it gets an empty datagram to the discard port.
  void make_kernel_resolve(unsigned index, const IpAddress& destination) noexcept;

  // Polls readable when an interface or an address has changed.
  int events_fd() const noexcept;
  // Reads what is there; true when there was anything.
  bool drain_events() noexcept;

 private:
  using Socket = std::unique_ptr<mnl_socket, int (*)(mnl_socket*)>;

  Socket requests_;
  Socket events_;
  unsigned sequence_ = 0;
};

}  // namespace rocemu::dpdk_io
