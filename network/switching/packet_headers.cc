#include "network/switching/packet_headers.h"

#include <cstring>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "base/net/headers.h"
#include "base/net/path_telemetry.h"

namespace rocemu::network {
namespace {

constexpr uint16_t kEtherTypeServiceVlan = 0x88a8;
constexpr uint8_t kIpProtocolTcp = 6;
constexpr size_t kPortsBytes = 4;
constexpr uint8_t kCongestionExperienced = 3;

// Changes a 16-bit word of an IPv4 header, and its checksum with it (RFC 1624, equation 3).
void change_word(std::byte* ip_header, size_t offset, uint16_t to) noexcept {
  const uint16_t from = load_be16(ip_header + offset);
  std::byte* const checksum = ip_header + 10;
  const uint32_t sum = uint32_t{static_cast<uint16_t>(~load_be16(checksum))} +
                       static_cast<uint16_t>(~from) + uint32_t{to};
  store_be16(checksum, internet_checksum(sum));
  store_be16(ip_header + offset, to);
}

bool is_ipv4(const std::byte* ip_header) noexcept { return load_u8(ip_header) >> 4 == 4; }

uint64_t hash_bytes(const std::byte* bytes, size_t count, uint64_t hash) noexcept {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    hash = mix(hash ^ word);
  }
  uint64_t rest = count;
  std::memcpy(&rest, bytes, count);
  return mix(hash + rest);
}

// Notes the bytes between the end of a UDP datagram and that of its IP packet, if path telemetry
// may be as long.
void find_surplus(size_t datagram_end, size_t packet_end, PacketHeaders& headers) noexcept {
  if (datagram_end >= packet_end || packet_end - datagram_end > kMaxTelemetryBytes ||
      packet_end > UINT16_MAX)
    return;
  headers.surplus_offset = static_cast<uint16_t>(datagram_end);
  headers.surplus_bytes = static_cast<uint8_t>(packet_end - datagram_end);
}

// The protocol at `offset`, whose ports are part of the flow, of a packet that ends at
// `packet_end`.
void parse_ports(std::span<const std::byte> bytes, uint8_t protocol, size_t offset,
                 size_t packet_end, PacketHeaders& headers) noexcept {
  headers.flow_hash = mix(headers.flow_hash ^ protocol);
  if (protocol != kIpProtocolUdp && protocol != kIpProtocolTcp) return;
  if (offset + kPortsBytes > bytes.size()) return;
  headers.flow_hash = mix(headers.flow_hash ^ load_be32(bytes.data() + offset));
  if (protocol != kIpProtocolUdp || offset + kUdpBytes > bytes.size()) return;
  headers.udp_offset = static_cast<uint8_t>(offset);
  find_surplus(offset + load_be16(bytes.data() + offset + 4), packet_end, headers);
}

void parse_ipv4(std::span<const std::byte> bytes, size_t offset, PacketHeaders& headers) noexcept {
  if (offset + kIpv4Bytes > bytes.size()) return;
  const std::byte* const ip = bytes.data() + offset;
  const size_t header_bytes = size_t{load_u8(ip) & 0xfu} * 4;
  if (!is_ipv4(ip) || header_bytes < kIpv4Bytes) return;
  headers.ip_offset = static_cast<uint8_t>(offset);
  headers.dscp = load_u8(ip + 1) >> 2;
  headers.ecn_capable = (load_u8(ip + 1) & 3) != 0;
  headers.flow_hash = hash_bytes(ip + 12, 8, headers.flow_hash);
  // Only the first fragment of a packet has ports, so ports count in whole packets alone.
  const bool whole = (load_be16(ip + 6) & kIpv4FragmentMask) == 0;
  const uint8_t protocol = load_u8(ip + 9);
  if (whole)
    parse_ports(bytes, protocol, offset + header_bytes, offset + load_be16(ip + 2), headers);
}

void parse_ipv6(std::span<const std::byte> bytes, size_t offset, PacketHeaders& headers) noexcept {
  if (offset + kIpv6Bytes > bytes.size()) return;
  const std::byte* const ip = bytes.data() + offset;
  if (load_u8(ip) >> 4 != 6) return;
  headers.ip_offset = static_cast<uint8_t>(offset);
  const auto traffic_class = static_cast<uint8_t>(load_be16(ip) >> 4);
  headers.dscp = traffic_class >> 2;
  headers.ecn_capable = (traffic_class & 3) != 0;
  headers.flow_hash = hash_bytes(ip + 8, 32, headers.flow_hash);
  const size_t packet_end = offset + kIpv6Bytes + load_be16(ip + 4);
  parse_ports(bytes, load_u8(ip + 6), offset + kIpv6Bytes, packet_end, headers);
}

}  // namespace

PacketHeaders parse_headers(std::span<const std::byte> bytes) noexcept {
  PacketHeaders headers;
  size_t type_at = kMacsBytes;
  uint16_t type = load_be16(bytes.data() + type_at);
  if ((type == kEtherTypeVlan || type == kEtherTypeServiceVlan) &&
      bytes.size() >= kEthernetBytes + kVlanTagBytes) {
    headers.pcp = load_u8(bytes.data() + type_at + 2) >> 5;
    type_at += kVlanTagBytes;
    type = load_be16(bytes.data() + type_at);
  }
  if (type == kEtherTypeIpv4) parse_ipv4(bytes, type_at + 2, headers);
  if (type == kEtherTypeIpv6) parse_ipv6(bytes, type_at + 2, headers);
  if (headers.ip_offset == 0) headers.flow_hash = hash_bytes(bytes.data(), kMacsBytes, type);
  return headers;
}

bool is_link_local(std::span<const std::byte> bytes) noexcept {
  return load_be32(bytes.data()) == 0x0180c200 && (load_be16(bytes.data() + 4) & 0xfff0) == 0;
}

bool mark_congestion(std::byte* ip) noexcept {
  const uint16_t before = load_be16(ip);
  if (is_ipv4(ip)) {
    change_word(ip, 0, before | kCongestionExperienced);
  } else {
    store_be16(ip, before | kCongestionExperienced << 4);
  }
  return load_be16(ip) != before;
}

void cut_headers(std::byte* frame, size_t ip_offset, size_t udp_offset, size_t length_bytes,
                 uint8_t dscp) noexcept {
  std::byte* const ip = frame + ip_offset;
  const size_t ip_bytes = length_bytes - ip_offset;
  if (is_ipv4(ip)) {
    change_word(ip, 0, static_cast<uint16_t>((load_be16(ip) & 0xff03) | dscp << 2));
    change_word(ip, 2, static_cast<uint16_t>(ip_bytes));
  } else {
    store_be16(ip, (load_be16(ip) & 0xf03fu) | uint32_t{dscp} << 6);
    store_be16(ip + 4, static_cast<uint32_t>(ip_bytes - kIpv6Bytes));
  }
  std::byte* const udp = frame + udp_offset;
  store_be16(udp + 4, static_cast<uint32_t>(length_bytes - udp_offset));
  store_be16(udp + 6, 0);
}

}  // namespace rocemu::network
