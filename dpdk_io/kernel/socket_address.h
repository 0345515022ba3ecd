// The way from IP addresses to the kernel's socket addresses.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "base/net/ip_address.h"

namespace rocemu::dpdk_io {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

// `interface_index` is the scope of a link-local address; others have none.
SocketAddress to_socket_address(const IpAddress& address, uint16_t port, unsigned interface_index);

}  // namespace rocemu::dpdk_io
