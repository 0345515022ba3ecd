// Neighbour solicitations and advertisements of IPv6 (RFC 4861, 4.3, 4.4 and 7.1).
#pragma once

#include <optional>

#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

struct NeighbourMessage {
  bool solicitation = false;  // else an advertisement
  IpAddress target;
  std::optional<MacAddress> mac;  // the sender's, as it says in an option
  bool solicited = false;         // advertisement: it answers a solicitation
  bool overriding = false;        // advertisement: it replaces what is known
};

// Empty: neither, or not valid by 7.1.
std::optional<NeighbourMessage> parse_neighbour_message(const IpPacket& packet) noexcept;

// Asks the solicited-node group of `target` who has it.
Frame build_solicitation(const MacAddress& own_mac, const IpAddress& own, const IpAddress& target);
// `own` is at `own_mac`: says so to the one who asked, or to all nodes when `to` is unspecified.
Frame build_advertisement(const MacAddress& own_mac, const IpAddress& own, const MacAddress& to_mac,
                          const IpAddress& to);

}  // namespace rocemu::dpdk_io
