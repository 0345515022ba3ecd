// Ethernet and IP headers: reading them from frames that anybody may have made, and writing them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dpdk_io/ip_host/ip_address.h"
#include "dpdk_io/ip_host/mac_address.h"

namespace rocemu::dpdk_io {

using Bytes = std::span<const uint8_t>;
using Frame = std::vector<uint8_t>;

inline constexpr size_t kEthernetBytes = 14;
inline constexpr size_t kIpv4Bytes = 20;
inline constexpr size_t kIpv6Bytes = 40;

// IEEE 802 numbers (IANA).
inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeArp = 0x0806;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;

// IP protocol numbers (IANA).
inline constexpr uint8_t kHopByHop = 0;
inline constexpr uint8_t kIcmp = 1;
inline constexpr uint8_t kIgmp = 2;
inline constexpr uint8_t kUdp = 17;
inline constexpr uint8_t kIcmpv6 = 58;

// ICMPv6's checksum lies there in each of its messages; ICMP's and IGMP's as well.
inline constexpr size_t kChecksumOffset = 2;

inline uint16_t get16(const uint8_t* at) noexcept {
  return static_cast<uint16_t>(at[0] << 8 | at[1]);
}
inline void put16(uint8_t* at, size_t value) noexcept {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

MacAddress mac_at(const uint8_t* at) noexcept;

// The frame's, which has an Ethernet header at least.
inline MacAddress destination_of(Bytes frame) noexcept { return mac_at(frame.data()); }
inline MacAddress source_of(Bytes frame) noexcept { return mac_at(&frame[6]); }
inline uint16_t ether_type_of(Bytes frame) noexcept { return get16(&frame[12]); }

// The Internet checksum (RFC 1071), without the final complement.
uint32_t sum16(Bytes bytes, uint32_t sum = 0) noexcept;
uint16_t checksum(uint32_t sum) noexcept;
// Of an IPv6 packet's pseudo header (RFC 8200, 8.1).
uint32_t pseudo_header_sum(const IpAddress& source, const IpAddress& destination, size_t length,
                           uint8_t protocol) noexcept;

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
  IpAddress destination;  // of the same family
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
