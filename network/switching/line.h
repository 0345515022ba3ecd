// The time that frames occupy a cable at its rate. The part of a frame's time beyond whole
// nanoseconds is kept for the next frame that follows at once, so that a long run takes exactly as
// long as its bytes.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace rocemu::network {

class Line {
 public:
  Line() = default;
  // Precondition: the rate is not 0.
  explicit Line(uint64_t rate_bits_per_s) : rate_bits_per_s_(rate_bits_per_s) {}

  // Returns when `bytes` (below 2^20) have left whose first leaves now.
  TimeNs occupy(TimeNs now, uint64_t bytes) noexcept {
    constexpr uint64_t kBitNsPerByteS = 8'000'000'000;
    const uint64_t work = bytes * kBitNsPerByteS + (now == free_at_ ? rest_ : 0);
    free_at_ = now + work / rate_bits_per_s_;
    rest_ = work % rate_bits_per_s_;
    return free_at_;
  }
  uint64_t rate_bits_per_s() const noexcept { return rate_bits_per_s_; }

 private:
  uint64_t rate_bits_per_s_ = 1;
  TimeNs free_at_ = 0;
  uint64_t rest_ = 0;  // part of a nanosecond that is kept, times the rate
};

}  // namespace rocemu::network
