// The addresses that a host has on its link, and what they say of others: who is on the link, where
// frames for the rest of the world go, and which groups belong to which address.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/net/ip_address.h"

namespace rocemu::dpdk_io {

// An address and the network it is in.
struct LinkAddress {
  IpAddress address;
  uint8_t prefix_bits = 0;  // in the address's own family: 32 at most for IPv4, 128 for IPv6

  bool operator==(const LinkAddress&) const = default;
};

struct IpSettings {
  std::vector<LinkAddress> addresses;
  std::vector<IpAddress> gateways;  // one of each family at most

  bool operator==(const IpSettings&) const = default;
};

// The groups of which everybody is a member (RFC 4291, 2.7.1 and RFC 1112, 4).
inline constexpr IpAddress kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
inline constexpr IpAddress kAllHosts{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 1}};

bool is_unspecified(const IpAddress& address) noexcept;

// A station's: no group, no broadcast, not unspecified, no loopback.
bool is_unicast(const IpAddress& address) noexcept;

// Both in the network that `prefix` describes. An IPv4 network's own two addresses, the first and
// the last, are nobody's; /31 and /32 have none such (RFC 3021).
bool is_on_link(const LinkAddress& prefix, const IpAddress& address) noexcept;

// ff02::1:ff00:0/104 with the last three bytes of the address (RFC 4291, 2.7.1).
IpAddress solicited_node_group(const IpAddress& address) noexcept;

// The neighbour on the link that frames for `destination` go to: itself, or a gateway. Empty: no
// way. IPv6 link-local addresses are always on the link.
std::optional<IpAddress> next_hop(const IpSettings& settings, const IpAddress& destination);

// The address to speak to `neighbour` from: the one in its network, else the first of its family.
std::optional<IpAddress> source_towards(const IpSettings& settings, const IpAddress& neighbour);

}  // namespace rocemu::dpdk_io
