#include "dpdk_io/kernel/socket_address.h"

#include <cstring>

namespace rocemu::dpdk_io {

SocketAddress to_socket_address(const IpAddress& address, uint16_t port, unsigned interface_index) {
  SocketAddress result;
  if (address.is_ipv4()) {
    auto& to = reinterpret_cast<sockaddr_in&>(result.storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, address.ipv4_bytes(), sizeof to.sin_addr);
    result.length = sizeof to;
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(result.storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    std::memcpy(&to.sin6_addr, address.bytes.data(), sizeof to.sin6_addr);
    to.sin6_scope_id = address.is_link_local_ipv6() ? interface_index : 0;
    result.length = sizeof to;
  }
  return result;
}

}  // namespace rocemu::dpdk_io
