#include "emulator/wire/tcp_segment.h"

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "base/net/headers.h"
#include "emulator/wire/frame_fields.h"

namespace rocemu::wire {
namespace {

constexpr uint8_t kFin = 0x01;
constexpr uint8_t kPsh = 0x08;
constexpr uint8_t kCwr = 0x80;

// Offsets within the headers (RFC 791, 3.1; RFC 8200, 3; RFC 9293, 3.1).
constexpr size_t kIpv4LengthAt = 2;
constexpr size_t kIpv4IdentificationAt = 4;
constexpr size_t kIpv4ChecksumAt = 10;
constexpr size_t kIpv4AddressesAt = 12;
constexpr size_t kIpv6LengthAt = 4;
constexpr size_t kIpv6AddressesAt = 8;
constexpr size_t kTcpSequenceAt = 4;
constexpr size_t kTcpFlagsAt = 13;
constexpr size_t kTcpChecksumAt = 16;

size_t ipv4_bytes(const std::byte* ip) { return size_t{load_u8(ip) & 0xfu} * 4; }

size_t tcp_bytes(const std::byte* tcp) { return size_t{load_u8(tcp + 12)} / 16 * 4; }

}  // namespace

std::optional<TcpOffsets> find_tcp(std::span<const std::byte> bytes) {
  if (bytes.size() < kEthernetBytes) return std::nullopt;
  const std::byte* const p = bytes.data();
  const auto [at, ether_type] = network_layer(bytes);
  const std::byte* const ip = p + at;
  const size_t rest = bytes.size() - at;
  TcpOffsets offsets;
  offsets.l3_bytes = static_cast<uint16_t>(at);
  size_t ip_bytes = 0;
  if (ether_type == kEtherTypeIpv4) {
    if (rest < kIpv4Bytes || load_u8(ip) >> 4 != 4 || load_u8(ip + 9) != kIpProtocolTcp ||
        (load_be16(ip + 6) & kIpv4FragmentMask) != 0)
      return std::nullopt;
    ip_bytes = ipv4_bytes(ip);
    if (ip_bytes < kIpv4Bytes) return std::nullopt;
    offsets.ipv4 = true;
  } else if (ether_type == kEtherTypeIpv6) {
    if (rest < kIpv6Bytes || load_u8(ip) >> 4 != 6 || load_u8(ip + 6) != kIpProtocolTcp)
      return std::nullopt;
    ip_bytes = kIpv6Bytes;
  } else {
    return std::nullopt;
  }
  offsets.l4_bytes = static_cast<uint16_t>(at + ip_bytes);
  if (rest < ip_bytes + kTcpBytes) return std::nullopt;
  const size_t header = tcp_bytes(p + offsets.l4_bytes);
  if (header < kTcpBytes || rest < ip_bytes + header) return std::nullopt;
  return offsets;
}

bool are_tcp_headers(std::span<const std::byte> headers) {
  const std::optional<TcpOffsets> offsets = find_tcp(headers);
  return offsets &&
         offsets->l4_bytes + tcp_bytes(headers.data() + offsets->l4_bytes) == headers.size();
}

bool finish_tcp_segment(std::span<std::byte> frame, const TcpSegment& segment) {
  const std::optional<TcpOffsets> offsets = find_tcp(frame);
  if (!offsets) return false;
  std::byte* const ip = frame.data() + offsets->l3_bytes;
  std::byte* const tcp = frame.data() + offsets->l4_bytes;
  const auto ip_packet_bytes = static_cast<uint32_t>(frame.size() - offsets->l3_bytes);
  const auto tcp_packet_bytes = static_cast<uint32_t>(frame.size() - offsets->l4_bytes);
  const size_t addresses_at = offsets->ipv4 ? kIpv4AddressesAt : kIpv6AddressesAt;
  const size_t addresses_bytes = offsets->ipv4 ? 8 : 32;
  if (offsets->ipv4) {
    const auto identification =
        static_cast<uint16_t>(load_be16(ip + kIpv4IdentificationAt) + segment.index);
    store_be16(ip + kIpv4LengthAt, static_cast<uint16_t>(ip_packet_bytes));
    store_be16(ip + kIpv4IdentificationAt, identification);
    store_be16(ip + kIpv4ChecksumAt, 0);
    store_be16(ip + kIpv4ChecksumAt, internet_checksum(sum16(ip, ipv4_bytes(ip))));
  } else {
    store_be16(ip + kIpv6LengthAt, static_cast<uint16_t>(tcp_packet_bytes));
  }
  store_be32(tcp + kTcpSequenceAt, load_be32(tcp + kTcpSequenceAt) + segment.offset_bytes);
  uint8_t flags = load_u8(tcp + kTcpFlagsAt);
  if (!segment.is_last) flags &= static_cast<uint8_t>(~(kFin | kPsh));
  if (segment.index != 0) flags &= static_cast<uint8_t>(~kCwr);
  store_u8(tcp + kTcpFlagsAt, flags);
  store_be16(tcp + kTcpChecksumAt, 0);
  const uint32_t pseudo_header =
      sum16(ip + addresses_at, addresses_bytes, kIpProtocolTcp + tcp_packet_bytes);
  store_be16(tcp + kTcpChecksumAt, internet_checksum(sum16(tcp, tcp_packet_bytes, pseudo_header)));
  return true;
}

}  // namespace rocemu::wire
