// A ring has the next power of two of slots, however many of them are granted to be used at a time.
#pragma once

#include <cstdint>

namespace rocemu::provider {

inline constexpr uint32_t kMaxEntries = 1u << 30;

// Precondition: at most kMaxEntries.
constexpr uint32_t ring_slots(uint32_t entries) {
  return entries <= 1 ? 1 : 2u << (31 - __builtin_clz(entries - 1));
}

}  // namespace rocemu::provider
