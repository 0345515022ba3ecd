#include "base/net/text.h"

#include <arpa/inet.h>

#include <cstdio>

namespace rocemu {

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

std::string to_text(const MacAddress& mac) {
  char text[sizeof "00:00:00:00:00:00"];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
                mac[4], mac[5]);
  return text;
}

}  // namespace rocemu
