// SendPace says when the next packet of a requester may leave, by the interval that congestion
// control asks for. A rate that the program sets is kept by qp/pacer.h, for all that a QP sends.
//
// A packet that leaves late lets the next ones come sooner, by half an interval or kMaxLateNs:
// otherwise every late turn of the engine would cost rate.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace rocemu::transport {

class SendPace {
 public:
  // False: not yet, and deadline() says when.
  bool allows(TimeNs now) {
    if (next_ <= now) [[likely]]
      return true;
    waits_ = true;
    return false;
  }

  // `interval_ns`: 0 for no pace.
  void on_sent(TimeNs now, TimeNs interval_ns) {
    waits_ = false;
    if (interval_ns == 0) [[likely]] {
      next_ = 0;
      return;
    }
    const TimeNs earliest =
        now + interval_ns - std::min(now, std::max(interval_ns / 2, kMaxLateNs));
    next_ = std::max(next_ + interval_ns, earliest);
  }
  // The next packet is not to leave before an interval from now.
  void hold(TimeNs now, TimeNs interval_ns) { next_ = now + interval_ns; }

  TimeNs deadline() const { return waits_ ? next_ : kNever; }
  void on_timeout(TimeNs now) {
    if (next_ <= now) waits_ = false;
  }
  void stop() { waits_ = false; }

 private:
  static constexpr TimeNs kMaxLateNs = 20'000;

  TimeNs next_ = 0;
  bool waits_ = false;  // a packet does
};

}  // namespace rocemu::transport
