// RttEstimator says how long to wait for an answer before a request is sent again early: the
// smoothed round-trip time and four times its variation (RFC 6298, 2), at least two round trips,
// since times that hardly vary for a while say little of the next, and within bounds that suit a
// software NIC.
//
// Only packets that were sent once are to be sampled (Karn's rule). The next sample takes all
// back-offs back at once, an answer that is no sample one of them: with many losses samples are
// rare.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace rocemu::transport {

class RttEstimator {
 public:
  // A NIC that shares its cores with programs answers late by a time slice of the scheduler's now
  // and then, however short the round trip is.
  static constexpr TimeNs kFloorNs = 200'000;
  // Before the first measurement: long for a network of this kind, and shorter than most programs'
  // ACK timeout.
  static constexpr TimeNs kUnknownNs = 4'000'000;
  static constexpr TimeNs kCapNs = 1'000'000'000;

  bool known() const { return smoothed_ns_ != 0; }

  void sample(TimeNs rtt_ns) {
    rtt_ns = std::clamp<TimeNs>(rtt_ns, 1, kCapNs);
    backoffs_ = 0;
    if (!known()) {
      smoothed_ns_ = rtt_ns;
      variation_ns_ = rtt_ns / 2;
      return;
    }
    const TimeNs error_ns = rtt_ns > smoothed_ns_ ? rtt_ns - smoothed_ns_ : smoothed_ns_ - rtt_ns;
    variation_ns_ = (3 * variation_ns_ + error_ns) / 4;
    smoothed_ns_ = std::max<TimeNs>((7 * smoothed_ns_ + rtt_ns) / 8, 1);
  }

  // Sent again, and no answer known yet: twice as long the next time.
  void back_off() { backoffs_ = std::min(backoffs_ + 1, kMaxBackoffs); }

  void ease() {
    if (backoffs_ > 0) --backoffs_;
  }

  TimeNs smoothed_ns() const { return known() ? smoothed_ns_ : kUnknownNs; }

  TimeNs timeout_ns() const {
    const TimeNs once_ns =
        known() ? std::max(kFloorNs, smoothed_ns_ + std::max(smoothed_ns_, 4 * variation_ns_))
                : kUnknownNs;
    return std::min(kCapNs, once_ns << backoffs_);
  }

 private:
  static constexpr unsigned kMaxBackoffs = 13;  // from the floor to the cap

  TimeNs smoothed_ns_ = 0;
  TimeNs variation_ns_ = 0;
  unsigned backoffs_ = 0;
};

}  // namespace rocemu::transport
