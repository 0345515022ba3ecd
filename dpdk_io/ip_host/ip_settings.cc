#include "dpdk_io/ip_host/ip_settings.h"

#include <algorithm>

namespace rocemu::dpdk_io {
namespace {

constexpr IpAddress kLoopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// All bits behind the first `bits` are `value`.
bool rest_is(const IpAddress& address, unsigned bits, bool value) noexcept {
  for (unsigned bit = bits; bit < 128; ++bit)
    if (((address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) != value) return false;
  return true;
}

}  // namespace

bool is_unspecified(const IpAddress& address) noexcept {
  return rest_is(address, address.is_ipv4() ? kIpv4MappedBits : 0, false);
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
  const unsigned bits = prefix.prefix_bits + (ipv4 ? kIpv4MappedBits : 0);
  if (!bits_equal(prefix.address, address, bits)) return false;
  return !ipv4 || prefix.prefix_bits >= 31 ||
         (!rest_is(address, bits, false) && !rest_is(address, bits, true));
}

IpAddress solicited_node_group(const IpAddress& address) noexcept {
  const auto& b = address.bytes;
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b[13], b[14], b[15]}};
}

std::optional<IpAddress> next_hop(const IpSettings& settings, const IpAddress& destination) {
  if (!is_unicast(destination)) return std::nullopt;
  if (destination.is_link_local_ipv6()) return destination;
  bool in_a_network = false;
  for (const LinkAddress& own : settings.addresses) {
    if (is_on_link(own, destination)) return destination;
    const unsigned bits = own.prefix_bits + (own.address.is_ipv4() ? kIpv4MappedBits : 0);
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
