// Answers to ping: ICMP (RFC 792) and ICMPv6 (RFC 4443, 4.1).
#pragma once

#include <optional>

#include "dpdk_io/ip_host/packet.h"

namespace rocemu::dpdk_io {

bool is_echo_request(const IpPacket& packet) noexcept;

// The answer to such a request, which came from `to_mac` for an address of ours. Empty when its
// checksum is wrong.
std::optional<Frame> build_echo_reply(const IpPacket& request, const MacAddress& own_mac,
                                      const MacAddress& to_mac);

}  // namespace rocemu::dpdk_io
