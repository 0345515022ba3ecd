// Ethernet and IP headers: reading them from frames that anybody may have made, and writing them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_order.h"
#include "base/net/headers.h"
#include "base/net/ip_address.h"

namespace rocemu::dpdk_io {

using Bytes = std::span<const uint8_t>;
using Frame = std::vector<uint8_t>;

// ICMPv6's checksum lies there in each of its messages; ICMP's and IGMP's as well.
inline constexpr size_t kChecksumOffset = 2;

// The frame's, which has an Ethernet header at least.
inline MacAddress destination_of(Bytes frame) noexcept { return mac_at(frame.data()); }
inline MacAddress source_of(Bytes frame) noexcept { return mac_at(&frame[6]); }
inline uint16_t ether_type_of(Bytes frame) noexcept { return load_be16(&frame[12]); }

struct IpPacket {
  IpAddress source;
  IpAddress destination;
  uint8_t protocol = 0;
  uint8_t hop_limit = 0;
  Bytes payload;  // without what Ethernet has padded
};

// A whole packet, or nothing: fragments, wrong lengths and a wrong header checksum are no packets.
// IPv4 options and one IPv6 hop-by-hop header (IGMP and MLD have them) are passed over.
std::optional<IpPacket> parse_ip(Bytes frame) noexcept;

// True when the message's checksum is right: ICMP's and IGMP's, or ICMPv6's.
bool has_right_checksum(const IpPacket& packet) noexcept;

struct IpHeader {
  MacAddress source_mac;
  MacAddress destination_mac;
  IpAddress source;
  IpAddress destination;  // in the source's family
  uint8_t protocol = 0;
  uint8_t hop_limit = 64;
  bool router_alert = false;  // RFC 2113, RFC 2711: what IGMP and MLD are sent with
};

// A frame with this message, whose checksum is put in at kChecksumOffset.
Frame build_ip(const IpHeader& header, Bytes message);

// An Ethernet header, to be continued.
Frame begin_frame(const MacAddress& destination, const MacAddress& source, uint16_t ether_type);
void append(Frame& frame, Bytes bytes);
// The least that Ethernet carries, without the FCS.
void pad(Frame& frame);

}  // namespace rocemu::dpdk_io
