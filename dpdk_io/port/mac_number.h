// MACs as numbers, their first byte lowest, so that comparing is one instruction.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace rocemu::dpdk_io {

static_assert(std::endian::native == std::endian::little);

inline uint64_t mac_number(const std::array<uint8_t, 6>& address) {
  uint64_t mac = 0;
  std::memcpy(&mac, address.data(), address.size());
  return mac;
}

// Reads 8 bytes; an Ethernet header has 14.
inline uint64_t destination_mac(const rte_mbuf* frame) {
  constexpr uint64_t kMacMask = 0xffff'ffff'ffff;
  uint64_t first_bytes;
  std::memcpy(&first_bytes, rte_pktmbuf_mtod(frame, const std::byte*), sizeof first_bytes);
  return first_bytes & kMacMask;
}

}  // namespace rocemu::dpdk_io
