#include "dpdk_io/ip_host/arp.h"

#include <algorithm>
#include <array>

namespace rocemu::dpdk_io {
namespace {

constexpr size_t kArpBytes = 28;
// Ethernet, IPv4, and the lengths of their addresses.
constexpr std::array<uint8_t, 6> kKinds = {0, 1, 0x08, 0x00, 6, 4};
constexpr uint16_t kRequest = 1;
constexpr uint16_t kReply = 2;

Frame build(uint16_t operation, const MacAddress& to, const MacAddress& own_mac,
            const IpAddress& own, const MacAddress& target_mac, const IpAddress& target) {
  Frame frame = begin_frame(to, own_mac, kEtherTypeArp);
  append(frame, kKinds);
  const std::array<uint8_t, 2> code = {0, static_cast<uint8_t>(operation)};
  append(frame, code);
  append(frame, own_mac);
  append(frame, {own.ipv4_bytes(), 4});
  append(frame, target_mac);
  append(frame, {target.ipv4_bytes(), 4});
  pad(frame);
  return frame;
}

}  // namespace

std::optional<ArpMessage> parse_arp(Bytes frame) noexcept {
  if (frame.size() < kEthernetBytes + kArpBytes || ether_type_of(frame) != kEtherTypeArp)
    return std::nullopt;
  const Bytes arp = frame.subspan(kEthernetBytes);
  if (!std::equal(kKinds.begin(), kKinds.end(), arp.begin())) return std::nullopt;
  const uint16_t operation = load_be16(&arp[6]);
  if (operation != kRequest && operation != kReply) return std::nullopt;
  const ArpMessage message{operation == kRequest, mac_at(&arp[8]), IpAddress::of_ipv4(&arp[14]),
                           IpAddress::of_ipv4(&arp[24])};
  if (!is_station(message.sender_mac)) return std::nullopt;
  return message;
}

Frame build_arp_request(const MacAddress& own_mac, const IpAddress& own, const IpAddress& target) {
  return build(kRequest, kBroadcastMac, own_mac, own, {}, target);
}

Frame build_arp_reply(const MacAddress& own_mac, const IpAddress& own, const MacAddress& to_mac,
                      const IpAddress& to) {
  return build(kReply, to_mac, own_mac, own, to_mac, to);
}

}  // namespace rocemu::dpdk_io
