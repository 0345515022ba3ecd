// An IP address of either version, and the way to text and to the kernel's socket addresses.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

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

// As people write them: 10.0.0.1, fd00::1. Empty when `text` is no address.
std::optional<IpAddress> parse_ip_address(const std::string& text);
std::string to_text(const IpAddress& address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

// `interface_index` is the scope of a link-local address; others have none.
SocketAddress to_socket_address(const IpAddress& address, uint16_t port, unsigned interface_index);

}  // namespace rocemu::dpdk_io
