#include "dpdk_io/ip_host/ip_settings.h"

#include <algorithm>

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kMappedBits = 96;  // of an IPv4 address in its IPv6 form
constexpr IpAddress kLoopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

bool bits_equal(const IpAddress& a, const IpAddress& b, unsigned bits) noexcept {
  const unsigned whole = bits / 8;
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + whole, b.bytes.begin())) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff << (8 - rest));
  return ((a.bytes[whole] ^ b.bytes[whole]) & mask) == 0;
}

// All bits behind the first `bits` are `value`.
bool rest_is(const IpAddress& address, unsigned bits, bool value) noexcept {
  for (unsigned bit = bits; bit < 128; ++bit)
    if (((address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) != value) return false;
  return true;
}

}  // namespace

bool is_multicast(const IpAddress& address) noexcept {
  return address.is_ipv4() ? (address.ipv4_bytes()[0] & 0xf0) == 0xe0 : address.bytes[0] == 0xff;
}

bool is_unspecified(const IpAddress& address) noexcept {
  return rest_is(address, address.is_ipv4() ? kMappedBits : 0, false);
}

bool same_family(const IpAddress& a, const IpAddress& b) noexcept {
  return a.is_ipv4() == b.is_ipv4();
}

bool is_unicast(const IpAddress& address) noexcept {
  if (is_multicast(address) || is_unspecified(address)) return false;
  if (!address.is_ipv4()) return address != kLoopback;
  const uint8_t first = address.ipv4_bytes()[0];
  return first != 0 && first != 127 && first < 224;
}

bool is_on_link(const LinkAddress& prefix, const IpAddress& address) noexcept {
  if (!same_family(prefix.address, address)) return false;
  const bool ipv4 = address.is_ipv4();
  const unsigned bits = prefix.prefix_bits + (ipv4 ? kMappedBits : 0);
  if (!bits_equal(prefix.address, address, bits)) return false;
  return !ipv4 || prefix.prefix_bits >= 31 ||
         (!rest_is(address, bits, false) && !rest_is(address, bits, true));
}

IpAddress link_local_address(const MacAddress& mac) noexcept {
  return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff,
           0xfe, mac[3], mac[4], mac[5]}};
}

IpAddress solicited_node_group(const IpAddress& address) noexcept {
  const auto& b = address.bytes;
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b[13], b[14], b[15]}};
}

MacAddress group_mac(const IpAddress& group) noexcept {
  const auto& b = group.bytes;
  if (group.is_ipv4()) return {0x01, 0x00, 0x5e, static_cast<uint8_t>(b[13] & 0x7f), b[14], b[15]};
  return {0x33, 0x33, b[12], b[13], b[14], b[15]};
}

std::optional<IpAddress> next_hop(const IpSettings& settings, const IpAddress& destination) {
  if (!is_unicast(destination)) return std::nullopt;
  if (destination.is_link_local_ipv6()) return destination;
  bool in_a_network = false;
  for (const LinkAddress& own : settings.addresses) {
    if (is_on_link(own, destination)) return destination;
    const unsigned bits = own.prefix_bits + (own.address.is_ipv4() ? kMappedBits : 0);
    in_a_network = in_a_network || bits_equal(own.address, destination, bits);
  }
  if (in_a_network) return std::nullopt;  // a broadcast address
  const auto gateway = std::ranges::find_if(settings.gateways, [&](const IpAddress& address) {
    return same_family(address, destination);
  });
  if (gateway == settings.gateways.end()) return std::nullopt;
  return *gateway;
}

std::optional<IpAddress> source_towards(const IpSettings& settings, const IpAddress& neighbour) {
  std::optional<IpAddress> first;
  for (const LinkAddress& own : settings.addresses) {
    if (is_on_link(own, neighbour)) return own.address;
    if (!first && same_family(own.address, neighbour)) first = own.address;
  }
  return first;
}

}  // namespace rocemu::dpdk_io
