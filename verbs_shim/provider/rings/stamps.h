// The times that a program tells the NIC while it is traced: when it posted, when it polled.
#pragma once

#include <time.h>

#include <cstdint>

namespace rocemu::provider {

inline uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// post_stamp of a request (verbs_shim/abi/rings.h), which is never 0.
inline uint32_t post_stamp_of(uint64_t now_ns) {
  constexpr uint64_t kUnitNs = 64;
  const auto stamp = static_cast<uint32_t>(now_ns / kUnitNs);
  return stamp == 0 ? 1 : stamp;
}

}  // namespace rocemu::provider
