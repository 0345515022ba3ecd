// MAC addresses, and those that stand for many stations (IEEE 802-2014, 8.2.2).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace rocemu {

using MacAddress = std::array<uint8_t, 6>;

inline constexpr MacAddress kBroadcastMac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

constexpr bool is_group(const MacAddress& mac) noexcept { return (mac[0] & 1) != 0; }

// True of an address that a single station can have.
constexpr bool is_station(const MacAddress& mac) noexcept {
  return !is_group(mac) && mac != MacAddress{};
}

// The MAC address in the six bytes from `at` on.
inline MacAddress mac_at(const void* at) noexcept {
  MacAddress mac;
  std::memcpy(mac.data(), at, mac.size());
  return mac;
}

}  // namespace rocemu
