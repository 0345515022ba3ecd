#include "dpdk_io/ip_host/neighbour_discovery.h"

#include "dpdk_io/ip_host/ip_settings.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint8_t kSolicitation = 135;
constexpr uint8_t kAdvertisement = 136;
constexpr size_t kFixedBytes = 24;         // up to the options
constexpr uint8_t kNoRouterBetween = 255;  // hop limit of all of these
constexpr uint8_t kSourceMacOption = 1;
constexpr uint8_t kTargetMacOption = 2;
constexpr uint8_t kSolicited = 0x40;
constexpr uint8_t kOverriding = 0x20;

// The MAC of the option of that type; `valid` says whether the options can be read at all.
std::optional<MacAddress> mac_in(Bytes options, uint8_t type, bool& valid) noexcept {
  std::optional<MacAddress> found;
  valid = true;
  while (!options.empty()) {
    const size_t bytes = options.size() < 2 ? 0 : options[1] * 8u;
    if (bytes == 0 || bytes > options.size()) {
      valid = false;
      return std::nullopt;
    }
    if (options[0] == type && is_station(mac_at(&options[2]))) found = mac_at(&options[2]);
    options = options.subspan(bytes);
  }
  return found;
}

Frame build(uint8_t type, uint8_t flags, const IpAddress& target, uint8_t option,
            const MacAddress& own_mac, const IpAddress& source, const MacAddress& to_mac,
            const IpAddress& to) {
  Frame message = {type, 0, 0, 0, flags, 0, 0, 0};
  append(message, target.bytes);
  message.push_back(option);
  message.push_back(1);  // in units of 8 bytes
  append(message, own_mac);
  return build_ip({own_mac, to_mac, source, to, kIpProtocolIcmpv6, kNoRouterBetween}, message);
}

}  // namespace

std::optional<NeighbourMessage> parse_neighbour_message(const IpPacket& packet) noexcept {
  const Bytes bytes = packet.payload;
  if (packet.protocol != kIpProtocolIcmpv6 || packet.hop_limit != kNoRouterBetween ||
      bytes.size() < kFixedBytes || packet.destination.is_ipv4())
    return std::nullopt;
  const bool solicitation = bytes[0] == kSolicitation;
  if ((!solicitation && bytes[0] != kAdvertisement) || bytes[1] != 0) return std::nullopt;
  if (!has_right_checksum(packet)) return std::nullopt;
  NeighbourMessage message;
  message.solicitation = solicitation;
  message.target = IpAddress::of_ipv6(&bytes[8]);
  if (message.target.is_ipv4() || is_multicast(message.target)) return std::nullopt;
  bool valid = false;
  message.mac =
      mac_in(bytes.subspan(kFixedBytes), solicitation ? kSourceMacOption : kTargetMacOption, valid);
  if (!valid) return std::nullopt;
  if (solicitation) {
    // Somebody who finds out whether the address is free has none to be answered at.
    if (is_unspecified(packet.source) &&
        (message.mac || packet.destination != solicited_node_group(message.target)))
      return std::nullopt;
  } else {
    message.solicited = (bytes[4] & kSolicited) != 0;
    message.overriding = (bytes[4] & kOverriding) != 0;
    if (message.solicited && is_multicast(packet.destination)) return std::nullopt;
  }
  return message;
}

Frame build_solicitation(const MacAddress& own_mac, const IpAddress& own, const IpAddress& target) {
  const IpAddress group = solicited_node_group(target);
  return build(kSolicitation, 0, target, kSourceMacOption, own_mac, own, group_mac(group), group);
}

Frame build_advertisement(const MacAddress& own_mac, const IpAddress& own, const MacAddress& to_mac,
                          const IpAddress& to) {
  if (is_unspecified(to))
    return build(kAdvertisement, kOverriding, own, kTargetMacOption, own_mac, own,
                 group_mac(kAllNodes), kAllNodes);
  return build(kAdvertisement, kSolicited | kOverriding, own, kTargetMacOption, own_mac, own,
               to_mac, to);
}

}  // namespace rocemu::dpdk_io
