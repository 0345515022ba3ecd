// ARP messages for IPv4 on Ethernet (RFC 826), and those that announce (RFC 5227).
#pragma once

#include <optional>

#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

struct ArpMessage {
  bool request = false;  // else a reply
  MacAddress sender_mac{};
  IpAddress sender;  // unspecified in a probe
  IpAddress target;
};

// Empty: no ARP, of other kinds of addresses, or from a sender that cannot be one.
std::optional<ArpMessage> parse_arp(Bytes frame) noexcept;

// Asks all who has `target`. An announcement asks for its own address.
Frame build_arp_request(const MacAddress& own_mac, const IpAddress& own, const IpAddress& target);
// `own` is at `own_mac`.
Frame build_arp_reply(const MacAddress& own_mac, const IpAddress& own, const MacAddress& to_mac,
                      const IpAddress& to);

}  // namespace rocemu::dpdk_io
