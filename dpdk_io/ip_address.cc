#include "dpdk_io/ip_address.h"

#include <arpa/inet.h>

#include <cstring>

namespace rocemu::dpdk_io {

std::optional<IpAddress> parse_ip_address(const std::string& text) {
  std::array<uint8_t, 16> bytes;
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1)
    return IpAddress::of_ipv4(bytes.data());
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1)
    return IpAddress::of_ipv6(bytes.data());
  return std::nullopt;
}

std::string to_text(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.is_ipv4()) {
    ::inet_ntop(AF_INET, address.ipv4_bytes(), text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  }
  return text;
}

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
