// Measures round trips: from a packet that will be answered to the answer that acknowledges it.
//
// 1. One packet at a time is timed, as TCP does without timestamps (RFC 6298, 3): one that will be
//    answered by itself, or the first of all, whose loss a NAK may tell of before.
// 2. A packet that was sent twice is no measure, since nobody knows which copy was answered (Karn's
//    rule): no copy is timed, and sending a timed packet again ends its measurement. After a NAK
//    for a sequence error copies are timed: the responder has thrown away what they are copies of.
//    So they are as long as there is no measurement at all: after many losses a bad one is better.
#pragma once

#include <optional>

#include "base/time.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class RoundTripMeter {
 public:
  // A packet was sent that covers the PSNs from `psn` to before `end`. `again`: not for the first
  // time. `answered`: the responder will say something about it.
  void on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool again, bool answered) {
    if (again && psn.before(timed_end_) && !end.before(timed_end_)) since_ = kNever;
    if ((!answered && measured_) || (again && !copies_count_) || since_ != kNever) return;
    since_ = now;
    timed_end_ = psn + 1;
  }

  // Everything before `una` has been answered. Returns the round trip when that ends a measurement.
  std::optional<TimeNs> on_progress(TimeNs now, wire::Psn una) {
    if (since_ == kNever || una.before(timed_end_)) return std::nullopt;
    const TimeNs rtt_ns = now - since_;
    measured_ = true;
    since_ = kNever;
    return rtt_ns;
  }

  // The packets in flight are about to be sent again. `copies_count`: rule 2.
  void on_sending_again(bool copies_count) {
    copies_count_ = copies_count;
    since_ = kNever;
  }

 private:
  bool measured_ = false;  // there was a round trip
  bool copies_count_ = false;
  TimeNs since_ = kNever;  // when the timed packet was sent; kNever: none is timed
  wire::Psn timed_end_;    // the PSN after it
};

}  // namespace rocemu::transport
