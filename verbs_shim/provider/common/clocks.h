// The clocks of the machine in ns, and how the wall clock follows from the one of the completions.
#pragma once

#include <stdint.h>
#include <time.h>

namespace rocemu::provider {

inline uint64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Times of the wall clock that never run backwards: how far it is ahead of the monotonic clock is
// found out once, when the device is opened. The two go at one speed, as the kernel adjusts both;
// what settimeofday does to the wall clock later is not followed, as a NIC's own clock does not.
class WallClock {
 public:
  WallClock() {
    uint64_t shortest_ns = UINT64_MAX;
    // The thread may lose its core between two readings.
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = now_ns(CLOCK_MONOTONIC);
      const uint64_t wall = now_ns(CLOCK_REALTIME);
      const uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - before;
      if (took_ns >= shortest_ns) continue;
      shortest_ns = took_ns;
      ahead_ns_ = wall - (before + took_ns / 2);
    }
  }
  uint64_t of_monotonic(uint64_t monotonic_ns) const { return monotonic_ns + ahead_ns_; }

 private:
  uint64_t ahead_ns_ = 0;  // modulo 2^64
};

}  // namespace rocemu::provider
