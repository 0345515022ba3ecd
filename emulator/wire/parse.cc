#include <cstring>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "base/net/path_telemetry.h"
#include "emulator/wire/packet.h"
#include "emulator/wire/selective.h"

namespace rocemu::wire {
namespace {

using Bytes = std::span<const std::byte>;

// Each parse_* takes what its layer got, fills in its part of the packet, and leaves in `rest` what
// the next layer gets.

ParseError parse_ethernet(Bytes frame, Ethernet& ethernet, uint16_t& ether_type, Bytes& rest) {
  if (frame.size() < kEthernetBytes) return ParseError::truncated;
  const std::byte* p = frame.data();
  std::memcpy(ethernet.destination.data(), p, ethernet.destination.size());
  std::memcpy(ethernet.source.data(), p + 6, ethernet.source.size());
  ether_type = load_be16(p + 12);
  rest = frame.subspan(kEthernetBytes);
  ethernet.vlan_tci.reset();
  if (ether_type != kEtherTypeVlan) return ParseError::none;

  if (rest.size() < kVlanTagBytes) return ParseError::truncated;
  ethernet.vlan_tci = load_be16(rest.data());
  ether_type = load_be16(rest.data() + 2);
  rest = rest.subspan(kVlanTagBytes);
  return ParseError::none;
}

ParseError parse_ipv4(Bytes bytes, Ip& ip, Bytes& l3, Bytes& rest) {
  if (bytes.size() < kIpv4Bytes) return ParseError::truncated;
  const std::byte* p = bytes.data();
  if (load_u8(p) >> 4 != 4) return ParseError::bad_ip_header;
  // Before the header length: what has options is most often IGMP, which is no error.
  if (load_u8(p + 9) != kIpProtocolUdp) return ParseError::not_roce;
  if (load_u8(p) != kIpv4VersionAndLength) return ParseError::bad_ip_header;
  const size_t total_bytes = load_be16(p + 2);
  if (total_bytes < kIpv4Bytes) return ParseError::bad_ip_header;
  if (total_bytes > bytes.size()) return ParseError::truncated;
  if (internet_checksum(ipv4_header_sum(p)) != 0) return ParseError::bad_ip_checksum;

  ip.traffic_class = load_u8(p + 1);
  ip.identification = load_be16(p + 4);
  ip.flags_fragment = load_be16(p + 6);
  if (ip.flags_fragment & kIpv4FragmentMask) return ParseError::fragment;
  ip.hop_limit = load_u8(p + 8);
  ip.flow_label = 0;
  ip.source = Gid{IpAddress::of_ipv4(p + 12)};
  ip.destination = Gid{IpAddress::of_ipv4(p + 16)};
  l3 = bytes.first(total_bytes);
  rest = l3.subspan(kIpv4Bytes);
  return ParseError::none;
}

ParseError parse_ipv6(Bytes bytes, Ip& ip, Bytes& l3, Bytes& rest) {
  if (bytes.size() < kIpv6Bytes) return ParseError::truncated;
  const std::byte* p = bytes.data();
  const uint32_t first_word = load_be32(p);
  if (first_word >> 28 != 6) return ParseError::bad_ip_header;
  if (load_u8(p + 6) != kIpProtocolUdp) return ParseError::not_roce;
  const size_t total_bytes = kIpv6Bytes + load_be16(p + 4);
  if (total_bytes > bytes.size()) return ParseError::truncated;

  ip.traffic_class = static_cast<uint8_t>(first_word >> 20);
  ip.flow_label = first_word & 0xfffff;
  ip.hop_limit = load_u8(p + 7);
  ip.identification = 0;
  ip.flags_fragment = 0;
  ip.source = Gid{IpAddress::of_ipv6(p + 8)};
  ip.destination = Gid{IpAddress::of_ipv6(p + 24)};
  if (ip.source.is_ipv4_mapped() || ip.destination.is_ipv4_mapped())
    return ParseError::bad_ip_header;
  l3 = bytes.first(total_bytes);
  rest = l3.subspan(kIpv6Bytes);
  return ParseError::none;
}

// `bytes` are longer than the datagram, or shorter.
ParseError parse_surplus(size_t udp_bytes, Bytes bytes, Packet& packet) {
  if (udp_bytes < kUdpBytes || udp_bytes > bytes.size()) return ParseError::bad_udp_length;
  const Bytes surplus = bytes.subspan(udp_bytes);
  if (!is_path_telemetry(surplus)) return ParseError::bad_udp_length;
  packet.telemetry = surplus;
  packet.l3 = packet.l3.first(packet.l3.size() - surplus.size());
  return ParseError::none;
}

ParseError parse_udp(Bytes bytes, Packet& packet, Bytes& rest) {
  if (bytes.size() < kUdpBytes) return ParseError::truncated;
  const std::byte* p = bytes.data();
  packet.udp = {load_be16(p), load_be16(p + 2), load_be16(p + 6)};
  if (packet.udp.destination_port != kRoceUdpPort) return ParseError::not_roce;
  packet.telemetry = {};
  const size_t udp_bytes = load_be16(p + 4);
  rest = bytes.subspan(kUdpBytes);
  if (udp_bytes == bytes.size()) [[likely]]
    return ParseError::none;
  const ParseError error = parse_surplus(udp_bytes, bytes, packet);
  if (error == ParseError::none) rest = bytes.first(udp_bytes).subspan(kUdpBytes);
  return error;
}

// Precondition: `p` holds kBthBytes.
Bth load_bth(const std::byte* p) {
  const uint8_t flags = load_u8(p + 1);
  const uint8_t congestion = load_u8(p + 4);
  const uint8_t acknowledge = load_u8(p + 8);
  return {
      .opcode = load_u8(p),
      .solicited = (flags & 0x80) != 0,
      .mig_req = (flags & 0x40) != 0,
      .pad_bytes = static_cast<uint8_t>(flags >> 4 & 0x3),
      .version = static_cast<uint8_t>(flags & 0xf),
      .pkey = load_be16(p + 2),
      .fecn = (congestion & 0x80) != 0,
      .becn = (congestion & 0x40) != 0,
      .reserved6 = static_cast<uint8_t>(congestion & 0x3f),
      .destination_qp = Qpn{load_be24(p + 5)},
      .ack_request = (acknowledge & 0x80) != 0,
      .reserved7 = static_cast<uint8_t>(acknowledge & 0x7f),
      .psn = Psn(load_be24(p + 9)),
  };
}

// Precondition: `p` holds the extended headers of `traits`. What the opcode does not carry is zero
// afterwards, whatever stood in `ext` from the frame before.
void load_extended_headers(const std::byte* p, const OpcodeTraits& traits, ExtendedHeaders& ext) {
  ext = {};
  if (traits.xrceth) {
    ext.xrc_srq.value = load_be24(p + 1);
    p += kXrcEthBytes;
  }
  if (traits.deth) {
    ext.deth = {.qkey = load_be32(p), .source_qp = Qpn{load_be24(p + 5)}};
    p += kDethBytes;
  }
  if (traits.feth) {
    const uint8_t bits = load_u8(p + 3);
    ext.feth = {.placement = static_cast<uint8_t>(bits & 0xf),
                .selectivity = static_cast<uint8_t>(bits >> 4 & 3)};
    p += kFethBytes;
  }
  if (traits.reth) {
    ext.reth = {.virtual_address = load_be64(p),
                .rkey = RKey{load_be32(p + 8)},
                .length_bytes = load_be32(p + 12)};
    p += kRethBytes;
  }
  if (traits.atomic_eth) {
    ext.atomic = {.virtual_address = load_be64(p),
                  .rkey = RKey{load_be32(p + 8)},
                  .swap_or_add = load_be64(p + 12),
                  .compare = load_be64(p + 20)};
    p += kAtomicEthBytes;
  }
  if (traits.aeth) {
    ext.aeth = {.syndrome = load_u8(p), .msn = load_be24(p + 1)};
    p += kAethBytes;
  }
  if (traits.atomic_ack_eth) {
    ext.atomic_original = load_be64(p);
    p += kAtomicAckEthBytes;
  }
  if (traits.imm) {
    std::memcpy(&ext.immediate, p, kImmBytes);
    p += kImmBytes;
  }
  if (traits.ieth) ext.invalidate.value = load_be32(p);
}

ParseError parse_transport(Bytes bytes, size_t max_payload_bytes, Packet& packet) {
  if (bytes.size() < kBthBytes + kIcrcBytes) return ParseError::truncated;
  packet.bth = load_bth(bytes.data());
  if (packet.bth.version != 0) return ParseError::bad_version;
  const OpcodeTraits& traits = traits_of(packet.bth.opcode);
  if (!traits.known) return ParseError::unknown_opcode;
  const size_t header_bytes = traits.header_bytes;
  if (bytes.size() < header_bytes + kIcrcBytes) return ParseError::truncated;
  load_extended_headers(bytes.data() + kBthBytes, traits, packet.ext);

  const size_t padded_bytes = bytes.size() - header_bytes - kIcrcBytes;
  if (padded_bytes % 4 != 0 || packet.bth.pad_bytes > padded_bytes) return ParseError::bad_payload;
  const size_t payload_bytes = padded_bytes - packet.bth.pad_bytes;
  const size_t place_bytes =
      selective::is_placed(packet.bth) ? selective::place_bytes(packet.bth.opcode) : 0;
  if (payload_bytes > max_payload_bytes + place_bytes) return ParseError::bad_payload;
  if (!traits.payload && padded_bytes != 0) return ParseError::bad_payload;
  if (packet.bth.opcode == kCnpOpcode && payload_bytes != kCnpReservedBytes)
    return ParseError::bad_payload;
  packet.payload = bytes.subspan(header_bytes, payload_bytes);
  return ParseError::none;
}

}  // namespace

ParseError parse_frame(std::span<const std::byte> frame, Packet& packet, size_t max_payload_bytes) {
  packet.packets = 1;
  packet.segment_bytes = 0;
  uint16_t ether_type = 0;
  Bytes rest;
  ParseError error = parse_ethernet(frame, packet.ethernet, ether_type, rest);
  if (error != ParseError::none) return error;

  if (ether_type == kEtherTypeIpv4)
    error = parse_ipv4(rest, packet.ip, packet.l3, rest);
  else if (ether_type == kEtherTypeIpv6)
    error = parse_ipv6(rest, packet.ip, packet.l3, rest);
  else
    error = ParseError::not_ip;
  if (error != ParseError::none) return error;

  error = parse_udp(rest, packet, rest);
  if (error != ParseError::none) return error;
  return parse_transport(rest, max_payload_bytes, packet);
}

std::string_view to_string(ParseError error) {
  switch (error) {
    case ParseError::none:
      return "none";
    case ParseError::truncated:
      return "truncated";
    case ParseError::not_ip:
      return "not IP";
    case ParseError::bad_ip_header:
      return "bad IP header";
    case ParseError::fragment:
      return "IP fragment";
    case ParseError::bad_ip_checksum:
      return "bad IPv4 header checksum";
    case ParseError::not_roce:
      return "not RoCEv2";
    case ParseError::bad_udp_length:
      return "bad UDP length";
    case ParseError::bad_version:
      return "bad BTH version";
    case ParseError::unknown_opcode:
      return "unknown BTH opcode";
    case ParseError::bad_payload:
      return "bad payload length";
  }
  return "unknown parse error";
}

}  // namespace rocemu::wire
