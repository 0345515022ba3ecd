// VLAN tags (IEEE 802.1Q) in frames that nobody else holds.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <cstring>

#include "base/byte_order.h"
#include "base/net/headers.h"

namespace rocemu::dpdk_io {

inline constexpr uint16_t kMaxVlanId = 4094;

// False when there is no room in front of the frame.
inline bool insert_vlan_tag(rte_mbuf* frame, uint16_t vlan_id) noexcept {
  char* const start = rte_pktmbuf_prepend(frame, kVlanTagBytes);
  if (start == nullptr) return false;
  std::memmove(start, start + kVlanTagBytes, kMacsBytes);
  auto* const tag = reinterpret_cast<uint8_t*>(start) + kMacsBytes;
  store_be16(tag, kEtherTypeVlan);
  store_be16(tag + 2, vlan_id);
  return true;
}

// Precondition: has_vlan_tag().
inline void remove_vlan_tag(rte_mbuf* frame) noexcept {
  char* const start = rte_pktmbuf_mtod(frame, char*);
  std::memmove(start + kVlanTagBytes, start, kMacsBytes);
  rte_pktmbuf_adj(frame, kVlanTagBytes);
}

// True of a tag with any priority.
inline bool has_vlan_tag(const rte_mbuf* frame, uint16_t vlan_id) noexcept {
  constexpr uint16_t kIdBits = 0x0fff;
  if (frame->data_len < kEthernetBytes + kVlanTagBytes) return false;
  const auto* const tag = rte_pktmbuf_mtod_offset(frame, const uint8_t*, kMacsBytes);
  return load_be16(tag) == kEtherTypeVlan && (load_be16(tag + 2) & kIdBits) == vlan_id;
}

}  // namespace rocemu::dpdk_io
