// MAC addresses, and those that stand for many (IEEE 802-2014, 8.2.2).
#pragma once

#include <array>
#include <cstdint>

namespace rocemu::dpdk_io {

using MacAddress = std::array<uint8_t, 6>;

inline constexpr MacAddress kBroadcastMac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

constexpr bool is_group(const MacAddress& mac) noexcept { return (mac[0] & 1) != 0; }

// One that a single station can have.
constexpr bool is_station(const MacAddress& mac) noexcept {
  return !is_group(mac) && mac != MacAddress{};
}

}  // namespace rocemu::dpdk_io
