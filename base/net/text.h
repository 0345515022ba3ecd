// Addresses as people write them.
#pragma once

#include <optional>
#include <string>

#include "base/net/ip_address.h"

namespace rocemu {

// 10.0.0.1, fd00::1. Empty when `text` is no address.
std::optional<IpAddress> parse_ip_address(const std::string& text);
std::string to_text(const IpAddress& address);

std::string to_text(const MacAddress& mac);  // 02:52:4f:43:45:00

}  // namespace rocemu
