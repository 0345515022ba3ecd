// MACs as numbers, their first byte lowest, so that comparing is one instruction.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rocemu::network {

static_assert(std::endian::native == std::endian::little);

inline constexpr size_t kEthernetHeaderBytes = 14;

// The first bit on the wire (IEEE 802-2014, 8.2.2): broadcast and multicast.
inline constexpr uint64_t kGroupBit = 0x01;

inline uint64_t mac_number(const std::array<uint8_t, 6>& address) {
  uint64_t mac = 0;
  std::memcpy(&mac, address.data(), address.size());
  return mac;
}

// Both read 8 bytes. Precondition: `frame` is kEthernetHeaderBytes long.
inline uint64_t destination_mac(const std::byte* frame) {
  uint64_t first_bytes;
  std::memcpy(&first_bytes, frame, sizeof first_bytes);
  return first_bytes & 0xffff'ffff'ffff;
}
inline uint64_t source_mac(const std::byte* frame) { return destination_mac(frame + 6); }

}  // namespace rocemu::network
