#include "dpdk_io/ip_host/packet.h"

#include <algorithm>
#include <array>

#include "base/net/checksum.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint8_t kIpv4RouterAlert[] = {0x94, 4, 0, 0};
// Next header, length, router alert of value 0 (MLD), padding of two bytes.
constexpr uint8_t kIpv6RouterAlert[] = {kIpProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0};

std::optional<IpPacket> parse_ipv4(Bytes ip) noexcept {
  if (ip.size() < kIpv4Bytes || ip[0] >> 4 != 4) return std::nullopt;
  const size_t header_bytes = (ip[0] & 0xfu) * 4u;
  const size_t total_bytes = load_be16(&ip[2]);
  if (header_bytes < kIpv4Bytes || total_bytes < header_bytes || total_bytes > ip.size())
    return std::nullopt;
  if ((load_be16(&ip[6]) & kIpv4FragmentMask) != 0) return std::nullopt;
  if (internet_checksum(sum16(ip.first(header_bytes))) != 0) return std::nullopt;
  return IpPacket{IpAddress::of_ipv4(&ip[12]), IpAddress::of_ipv4(&ip[16]), ip[9], ip[8],
                  ip.subspan(header_bytes, total_bytes - header_bytes)};
}

std::optional<IpPacket> parse_ipv6(Bytes ip) noexcept {
  if (ip.size() < kIpv6Bytes || ip[0] >> 4 != 6) return std::nullopt;
  const size_t payload_bytes = load_be16(&ip[4]);
  if (payload_bytes > ip.size() - kIpv6Bytes) return std::nullopt;
  IpPacket packet{IpAddress::of_ipv6(&ip[8]), IpAddress::of_ipv6(&ip[24]), ip[6], ip[7],
                  ip.subspan(kIpv6Bytes, payload_bytes)};
  // An IPv4 address in IPv6's clothes is none (RFC 4291, 2.5.5.2), and would be taken for IPv4.
  if (packet.source.is_ipv4() || packet.destination.is_ipv4()) return std::nullopt;
  if (packet.protocol != kIpProtocolHopByHop) return packet;
  if (packet.payload.size() < 8) return std::nullopt;
  const size_t header_bytes = (packet.payload[1] + 1u) * 8u;
  if (header_bytes > packet.payload.size()) return std::nullopt;
  packet.protocol = packet.payload[0];
  packet.payload = packet.payload.subspan(header_bytes);
  return packet;
}

void append_address(Frame& frame, const IpAddress& address) {
  append(frame, address.is_ipv4() ? Bytes(address.ipv4_bytes(), 4) : Bytes(address.bytes));
}

void append_ipv4(Frame& frame, const IpHeader& header, size_t message_bytes) {
  const size_t start = frame.size();
  const size_t header_bytes = kIpv4Bytes + (header.router_alert ? sizeof kIpv4RouterAlert : 0);
  const size_t total_bytes = header_bytes + message_bytes;
  constexpr uint8_t kDontFragment = 0x40;
  constexpr uint8_t kInternetworkControl = 0xc0;  // type of service for IGMP (RFC 3376, 4)
  const std::array<uint8_t, 12> fixed = {static_cast<uint8_t>(0x40 | header_bytes / 4),
                                         header.router_alert ? kInternetworkControl : uint8_t{0},
                                         static_cast<uint8_t>(total_bytes >> 8),
                                         static_cast<uint8_t>(total_bytes),
                                         0,
                                         0,
                                         kDontFragment,
                                         0,
                                         header.hop_limit,
                                         header.protocol,
                                         0,
                                         0};
  append(frame, fixed);
  append_address(frame, header.source);
  append_address(frame, header.destination);
  if (header.router_alert) append(frame, kIpv4RouterAlert);
  store_be16(&frame[start + 10], internet_checksum(sum16(Bytes(frame).subspan(start))));
}

void append_ipv6(Frame& frame, const IpHeader& header, size_t message_bytes) {
  const size_t payload_bytes = message_bytes + (header.router_alert ? sizeof kIpv6RouterAlert : 0);
  const std::array<uint8_t, 8> fixed = {0x60,
                                        0,
                                        0,
                                        0,
                                        static_cast<uint8_t>(payload_bytes >> 8),
                                        static_cast<uint8_t>(payload_bytes),
                                        header.router_alert ? kIpProtocolHopByHop : header.protocol,
                                        header.hop_limit};
  append(frame, fixed);
  append_address(frame, header.source);
  append_address(frame, header.destination);
  if (header.router_alert) append(frame, kIpv6RouterAlert);
}

}  // namespace

std::optional<IpPacket> parse_ip(Bytes frame) noexcept {
  if (frame.size() < kEthernetBytes) return std::nullopt;
  const Bytes ip = frame.subspan(kEthernetBytes);
  switch (ether_type_of(frame)) {
    case kEtherTypeIpv4:
      return parse_ipv4(ip);
    case kEtherTypeIpv6:
      return parse_ipv6(ip);
    default:
      return std::nullopt;
  }
}

bool has_right_checksum(const IpPacket& packet) noexcept {
  const uint32_t before = packet.destination.is_ipv4()
                              ? 0
                              : pseudo_header_sum(packet.source, packet.destination,
                                                  packet.payload.size(), packet.protocol);
  return internet_checksum(sum16(packet.payload, before)) == 0;
}

Frame build_ip(const IpHeader& header, Bytes message) {
  const bool ipv4 = header.destination.is_ipv4();
  Frame frame = begin_frame(header.destination_mac, header.source_mac,
                            ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  if (ipv4) {
    append_ipv4(frame, header, message.size());
  } else {
    append_ipv6(frame, header, message.size());
  }
  const size_t start = frame.size();
  append(frame, message);
  uint8_t* const sum = &frame[start + kChecksumOffset];
  store_be16(sum, 0);
  const uint32_t before =
      ipv4 ? 0
           : pseudo_header_sum(header.source, header.destination, message.size(), header.protocol);
  store_be16(sum, internet_checksum(sum16(Bytes(frame).subspan(start), before)));
  pad(frame);
  return frame;
}

Frame begin_frame(const MacAddress& destination, const MacAddress& source, uint16_t ether_type) {
  Frame frame;
  append(frame, destination);
  append(frame, source);
  const std::array<uint8_t, 2> type = {static_cast<uint8_t>(ether_type >> 8),
                                       static_cast<uint8_t>(ether_type)};
  append(frame, type);
  return frame;
}

void append(Frame& frame, Bytes bytes) { frame.insert(frame.end(), bytes.begin(), bytes.end()); }

void pad(Frame& frame) { frame.resize(std::max(frame.size(), kMinFrameBytes)); }

}  // namespace rocemu::dpdk_io
