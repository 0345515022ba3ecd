#include "emulator/wire/frame_fields.h"

#include "base/byte_order.h"
#include "emulator/wire/packet.h"

namespace rocemu::wire {
namespace {

using Bytes = std::span<const std::byte>;

// The headers that may stand between IPv6's and that of UDP (RFC 8200, 4; RFC 4302).
constexpr uint8_t kHopByHopOptions = 0;
constexpr uint8_t kRouting = 43;
constexpr uint8_t kFragment = 44;
constexpr uint8_t kAuthentication = 51;
constexpr uint8_t kDestinationOptions = 60;
constexpr size_t kMinExtensionBytes = 8;

template <size_t kBytes>
void copy(std::array<uint8_t, kBytes>& to, const std::byte* from, size_t bytes = kBytes) {
  std::memcpy(to.data(), from, bytes);
}

// The headers of TCP and UDP begin with the ports.
void take_ports(Bytes l4, FrameFields& fields) {
  if ((fields.protocol != kIpProtocolTcp && fields.protocol != kIpProtocolUdp) || l4.size() < 4)
    return;
  copy(fields.source_port, l4.data());
  copy(fields.destination_port, l4.data() + 2);
}

void take_ipv4(Bytes ip, FrameFields& fields) {
  if (ip.size() < kIpv4Bytes || load_u8(ip.data()) >> 4 != 4) return;
  const std::byte* p = ip.data();
  const size_t header_bytes = size_t{load_u8(p) & 0xfu} * 4;
  const uint16_t fragment = load_be16(p + 6);
  fields.ip_version = 4;
  fields.traffic_class = load_u8(p + 1);
  fields.ip_flags = static_cast<uint8_t>(fragment >> 13);
  fields.hop_limit = load_u8(p + 8);
  fields.protocol = load_u8(p + 9);
  copy(fields.source_ip, p + 12, 4);
  copy(fields.destination_ip, p + 16, 4);
  const bool begins = (fragment & 0x1fff) == 0;
  if (begins && header_bytes >= kIpv4Bytes && header_bytes <= ip.size())
    take_ports(ip.subspan(header_bytes), fields);
}

void take_ipv6(Bytes ip, FrameFields& fields) {
  if (ip.size() < kIpv6Bytes || load_u8(ip.data()) >> 4 != 6) return;
  const std::byte* p = ip.data();
  const uint32_t first_word = load_be32(p);
  fields.ip_version = 6;
  fields.traffic_class = static_cast<uint8_t>(first_word >> 20);
  store_be32(reinterpret_cast<std::byte*>(fields.flow_label.data()), first_word & 0xfffff);
  fields.protocol = load_u8(p + 6);
  fields.hop_limit = load_u8(p + 7);
  copy(fields.source_ip, p + 8);
  copy(fields.destination_ip, p + 24);
  take_ports(ip.subspan(kIpv6Bytes), fields);
}

// What an extension header says of its own length.
size_t extension_bytes(uint8_t type, Bytes header) {
  if (type == kFragment) return kMinExtensionBytes;
  const size_t length = load_u8(header.data() + 1);
  return type == kAuthentication ? (length + 2) * 4 : (length + 1) * 8;
}

// Where the headers are cut off, what is missing may come in another fragment.
bool may_be_roce_over_ipv6(Bytes ip) {
  if (ip.size() < kIpv6Bytes || load_u8(ip.data()) >> 4 != 6) return false;
  uint8_t next = load_u8(ip.data() + 6);
  Bytes rest = ip.subspan(kIpv6Bytes);
  while (next == kHopByHopOptions || next == kRouting || next == kFragment ||
         next == kAuthentication || next == kDestinationOptions) {
    if (rest.size() < kMinExtensionBytes) return true;
    const bool goes_on = next == kFragment && (load_be16(rest.data() + 2) & 0xfff8) != 0;
    if (goes_on) return false;  // the headers came in the first fragment, which decides
    const size_t bytes = extension_bytes(next, rest);
    next = load_u8(rest.data());
    if (bytes > rest.size()) return true;
    rest = rest.subspan(bytes);
  }
  if (next != kIpProtocolUdp) return false;
  return rest.size() < kUdpBytes || load_be16(rest.data() + 2) == kRoceUdpPort;
}

}  // namespace

FrameFields frame_fields(Bytes frame) {
  FrameFields fields;
  if (frame.size() < kEthernetBytes) return fields;
  const std::byte* p = frame.data();
  copy(fields.destination_mac, p);
  copy(fields.source_mac, p + 6);
  uint16_t ether_type = load_be16(p + 12);
  Bytes rest = frame.subspan(kEthernetBytes);
  if (ether_type == kEtherTypeVlan && rest.size() >= kVlanTagBytes) {
    fields.tagged = 1;
    copy(fields.vlan_tci, rest.data());
    ether_type = load_be16(rest.data() + 2);
    rest = rest.subspan(kVlanTagBytes);
  }
  fields.ether_type = {static_cast<uint8_t>(ether_type >> 8), static_cast<uint8_t>(ether_type)};
  if (ether_type == kEtherTypeIpv4) take_ipv4(rest, fields);
  if (ether_type == kEtherTypeIpv6) take_ipv6(rest, fields);
  return fields;
}

bool is_roce(const FrameFields& fields) {
  constexpr std::array<uint8_t, 2> kPort{kRoceUdpPort >> 8, kRoceUdpPort & 0xff};
  return fields.protocol == kIpProtocolUdp && fields.destination_port == kPort;
}

NetworkLayer network_layer(Bytes frame) {
  size_t at = kEthernetBytes;
  uint16_t ether_type = load_be16(frame.data() + at - 2);
  while ((ether_type == kEtherTypeVlan || ether_type == kEtherTypeServiceVlan) &&
         frame.size() - at >= kVlanTagBytes) {
    at += kVlanTagBytes;
    ether_type = load_be16(frame.data() + at - 2);
  }
  return {at, ether_type};
}

bool may_be_roce(Bytes frame) {
  if (frame.size() < kEthernetBytes) return false;
  const NetworkLayer l3 = network_layer(frame);
  const Bytes rest = frame.subspan(l3.offset_bytes);
  if (l3.ether_type == kEtherTypeIpv6) return may_be_roce_over_ipv6(rest);
  FrameFields fields;
  if (l3.ether_type == kEtherTypeIpv4) take_ipv4(rest, fields);
  return is_roce(fields);
}

}  // namespace rocemu::wire
