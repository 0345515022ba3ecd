// A device's port as the kernel's network has it: GIDs, MTU, MAC and state from interfaces and
// their addresses. Names and rules are those of Linux's RoCE core, so that a program finds the same
// table as on a kernel device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "dpdk_io/ip_host/ip_settings.h"
#include "dpdk_io/kernel/kernel_network.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

// The most that a packet may have beside its payload, as iboe_get_mtu() of Linux counts it: GRH
// (the longest IP header), UDP, BTH, XRCETH, AtomicETH, ICRC.
inline constexpr unsigned kMaxHeaderBytes = 40 + 8 + 12 + 4 + 28 + 4;
// The most beside a payload that is there: GRH, UDP, BTH, XRCETH, RETH, ImmDt, ICRC.
inline constexpr unsigned kMaxPayloadHeaderBytes = 40 + 8 + 12 + 4 + 16 + 4 + 4;

// The number of places in a port's GID table. As on other devices most of them are empty, so that a
// program need not ask for the table's length again when an address comes. A UDP port with more
// addresses has a longer one.
inline constexpr size_t kGidTableLength = 64;
inline size_t gid_table_length(const device::PortConfig& port) {
  return std::max(kGidTableLength, port.gids.size());
}

// The largest path MTU that fits into the interface's MTU with all headers a packet can have and
// the port's trailer; 256 at least.
uint32_t path_mtu_bytes(unsigned interface_mtu_bytes, unsigned trailer_bytes = 0);

// Describes a port on an interface. GID 0 is the link-local address made from the MAC, then comes
// one for each IP address. A GID keeps its index for as long as the address is there; one that goes
// leaves an empty place, which the next one takes. Empty `now`: the interface is gone, and the port
// is down.
device::PortConfig describe_interface_port(const device::PortConfig& before,
                                           const std::optional<dpdk_io::KernelInterface>& now);

struct UdpAddress {
  IpAddress address;
  std::optional<dpdk_io::KernelInterface> interface;  // the one that has the address now
};

// Describes a port on UDP sockets, which has a GID for each address, empty while no interface has
// it, and is up while one of the interfaces is. Precondition: at least one address.
device::PortConfig describe_udp_port(const device::PortConfig& before,
                                     std::span<const UdpAddress> addresses);

// Describes a port on a device of DPDK, of which only the state of its link changes.
device::PortConfig describe_ethdev_port(const device::PortConfig& before, const MacAddress& mac,
                                        unsigned mtu_bytes, const dpdk_io::IpSettings& ip,
                                        bool link_is_up);

// Returns the addresses that a device has on a switch as those of a network: /24 and /64.
dpdk_io::IpSettings default_network(const device::PortConfig& port);

// Makes a MAC for an address whose own never shows: locally administered, from its last bytes.
MacAddress mac_standing_for(const IpAddress& address);
// The same for a peer of a port on UDP sockets: never the port's own, which would turn frames back.
MacAddress mac_standing_for_peer(const device::PortConfig& port, const IpAddress& peer);

}  // namespace rocemu::daemon
