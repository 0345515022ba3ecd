// TurnBudget bounds how long one turn of the engine goes on before it looks again at commands,
// doorbells and timers. Whoever works off what programs or the wire have heaped up charges it by
// the piece and leaves the rest for the next turn once it is spent. The clock is read every few
// pieces only, so that a turn which does little does not pay for it.
#pragma once

#include "base/monotonic_clock.h"
#include "base/time.h"

namespace rocemu::daemon {

class TurnBudget {
 public:
  using Clock = TimeNs (*)();

  // A turn finishes what it has begun, a burst mostly, so that it takes up to twice as long.
  static constexpr TimeNs kTurnNs = 20'000;
  static constexpr unsigned kPiecesPerLook = 16;  // a piece takes a microsecond, more or less

  explicit TurnBudget(TimeNs began, Clock clock = &monotonic_now_ns)
      : ends_(began + kTurnNs), clock_(clock) {}

  // A piece is a frame, a request, a completion or the like.
  void charge(unsigned pieces) {
    unseen_ += pieces;
    if (unseen_ < kPiecesPerLook) return;
    unseen_ = 0;
    spent_ = spent_ || clock_() >= ends_;
  }
  bool spent() const { return spent_; }

 private:
  TimeNs ends_;
  Clock clock_;
  unsigned unseen_ = 0;
  bool spent_ = false;
};

}  // namespace rocemu::daemon
