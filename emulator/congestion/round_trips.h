// RoundTrips says what the round trips of a QP tell of the queues on its path, which make them
// longer than the shortest.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace rocemu::congestion {

class RoundTrips {
 public:
  void sample(TimeNs rtt_ns) {
    before_newest_ns_ = newest_ns_;
    newest_ns_ = std::max<TimeNs>(rtt_ns, 1);
    shortest_ns_ = std::min(shortest_ns_, newest_ns_);
    lately_ns_ = std::min(lately_ns_, newest_ns_);
    if (++samples_ < kFewSamples) return;
    standing_ns_ = lately_ns_;
    lately_ns_ = kNever;
    samples_ = 0;
  }

  bool known() const { return shortest_ns_ != kNever; }
  // Precondition: known().
  TimeNs shortest_ns() const { return shortest_ns_; }

  // True when the last two round trips were longer than the shortest, or there is none to compare
  // with.
  bool queue_seen() const {
    return !known() || std::min(newest_ns_, before_newest_ns_) > shortest_ns_ + shortest_ns_ / 25;
  }

  // Even the best of kFewSamples lately was longer than the shortest by so many times that.
  double standing_queue() const {
    if (!known() || standing_ns_ <= shortest_ns_) return 0;
    return static_cast<double>(standing_ns_ - shortest_ns_) / static_cast<double>(shortest_ns_);
  }

 private:
  static constexpr unsigned kFewSamples = 4;

  TimeNs shortest_ns_ = kNever;
  TimeNs newest_ns_ = 0;
  TimeNs before_newest_ns_ = 0;
  TimeNs standing_ns_ = 0;     // the shortest of the last kFewSamples that are complete …
  TimeNs lately_ns_ = kNever;  // … and of those that are not
  unsigned samples_ = 0;
};

}  // namespace rocemu::congestion
