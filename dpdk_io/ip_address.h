// The way from IP addresses to text and to the kernel's socket addresses.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>

#include "dpdk_io/ip_host/ip_address.h"

namespace rocemu::dpdk_io {

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
