// Pacer keeps a QP to the rate that its program has set (ibv_modify_qp_rate_limit(3)): a leaky
// bucket, kept as the time at which it has run empty. Answers of the QP (ACKs and NAKs) are not
// held back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace rocemu::transport {

struct RateLimit {
  uint32_t rate_kbps = 0;        // 0: none; it counts whole frames, from the Ethernet header on
  uint32_t max_burst_bytes = 0;  // 0: what the rate gives in a millisecond
};

class Pacer {
 public:
  explicit Pacer(const RateLimit& limit) : rate_kbps_(limit.rate_kbps) {
    const uint64_t burst = limit.max_burst_bytes != 0 ? limit.max_burst_bytes : default_burst();
    burst_ns_ = time_of(burst);
  }

  bool may_send(TimeNs now) const { return empty_at_ <= now + burst_ns_; }
  // The time at which may_send() comes true, if nothing is sent meanwhile.
  TimeNs next_send() const { return empty_at_ > burst_ns_ ? empty_at_ - burst_ns_ : 0; }
  void on_sent(TimeNs now, uint32_t bytes) {
    empty_at_ = std::max(empty_at_, now) + time_of(bytes);
  }

 private:
  // A timer that comes late by less than the burst takes costs nothing of the rate.
  static constexpr uint64_t kMinBurstBytes = 4096;
  static constexpr uint64_t kMaxBurstBytes = 1 << 20;
  uint64_t default_burst() const {
    return std::clamp<uint64_t>(rate_kbps_ / 8, kMinBurstBytes, kMaxBurstBytes);
  }
  TimeNs time_of(uint64_t bytes) const { return bytes * 8'000'000 / rate_kbps_; }

  uint64_t rate_kbps_;
  TimeNs burst_ns_;
  TimeNs empty_at_ = 0;
};

}  // namespace rocemu::transport
