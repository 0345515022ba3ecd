// An IP address of either version.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace rocemu::dpdk_io {

// IPv6, or IPv4 as ::ffff:a.b.c.d.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};
  auto operator<=>(const IpAddress&) const = default;

  bool is_ipv4() const noexcept;
  bool is_link_local_ipv6() const noexcept { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  bool is_loopback_ipv4() const noexcept { return is_ipv4() && bytes[12] == 127; }
  const uint8_t* ipv4_bytes() const noexcept { return &bytes[12]; }

  static IpAddress of_ipv4(const void* four_bytes) noexcept;
  static IpAddress of_ipv6(const void* sixteen_bytes) noexcept;
};

}  // namespace rocemu::dpdk_io
