// IP addresses of both versions, and what their bits say.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/net/mac_address.h"

namespace rocemu {

using Ipv4Address = std::array<uint8_t, 4>;

// The bits before an IPv4 address in its IPv6 form.
inline constexpr unsigned kIpv4MappedBits = 96;

// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  constexpr auto operator<=>(const IpAddress&) const = default;

  constexpr bool is_ipv4() const noexcept {
    for (size_t i = 0; i < 10; ++i)
      if (bytes[i] != 0) return false;
    return bytes[10] == 0xff && bytes[11] == 0xff;
  }
  constexpr bool is_link_local_ipv6() const noexcept {
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  }
  constexpr bool is_loopback_ipv4() const noexcept { return is_ipv4() && bytes[12] == 127; }
  constexpr Ipv4Address ipv4() const noexcept {
    return {bytes[12], bytes[13], bytes[14], bytes[15]};
  }
  const uint8_t* ipv4_bytes() const noexcept { return &bytes[12]; }

  static IpAddress of_ipv4(const void* four_bytes) noexcept {
    IpAddress address;
    address.bytes[10] = address.bytes[11] = 0xff;
    std::memcpy(&address.bytes[12], four_bytes, 4);
    return address;
  }
  static IpAddress of_ipv6(const void* sixteen_bytes) noexcept {
    IpAddress address;
    std::memcpy(address.bytes.data(), sixteen_bytes, address.bytes.size());
    return address;
  }
};

constexpr bool is_multicast(const IpAddress& address) noexcept {
  return address.is_ipv4() ? (address.bytes[12] & 0xf0) == 0xe0 : address.bytes[0] == 0xff;
}

constexpr bool same_family(const IpAddress& a, const IpAddress& b) noexcept {
  return a.is_ipv4() == b.is_ipv4();
}

// True when the first `bits` of 128 are the same.
constexpr bool bits_equal(const IpAddress& a, const IpAddress& b, unsigned bits) noexcept {
  const unsigned whole = bits / 8;
  for (unsigned i = 0; i < whole; ++i)
    if (a.bytes[i] != b.bytes[i]) return false;
  const auto mask = static_cast<uint8_t>(0xff00 >> bits % 8);
  return whole == a.bytes.size() || ((a.bytes[whole] ^ b.bytes[whole]) & mask) == 0;
}

// fe80::/64 with the modified EUI-64 of the MAC (RFC 4291, appendix A).
constexpr IpAddress link_local_address(const MacAddress& mac) noexcept {
  return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff,
           0xfe, mac[3], mac[4], mac[5]}};
}

// Returns where frames to a multicast group go (RFC 1112, 6.4 and RFC 2464, 7).
constexpr MacAddress group_mac(const IpAddress& group) noexcept {
  const auto& b = group.bytes;
  if (group.is_ipv4()) return {0x01, 0x00, 0x5e, static_cast<uint8_t>(b[13] & 0x7f), b[14], b[15]};
  return {0x33, 0x33, b[12], b[13], b[14], b[15]};
}

}  // namespace rocemu
