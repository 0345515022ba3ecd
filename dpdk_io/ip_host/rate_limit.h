// RateLimit allows so many a second, and some at once: it limits answers that anybody can make us
// send.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::dpdk_io {

class RateLimit {
 public:
  constexpr RateLimit(uint64_t per_second, uint64_t at_once)
      : interval_ns_(1'000'000'000 / per_second), burst_ns_(interval_ns_ * at_once) {}

  // False: too many, this one not. Time does not go back.
  bool allows(uint64_t now_ns) noexcept {
    const uint64_t start = std::max(next_ns_, now_ns);
    if (start - now_ns >= burst_ns_) return false;
    next_ns_ = start + interval_ns_;
    return true;
  }

 private:
  uint64_t interval_ns_;
  uint64_t burst_ns_;
  uint64_t next_ns_ = 0;  // when all that were allowed are paid for
};

}  // namespace rocemu::dpdk_io
