// EngineClock holds the time of the engine's current turn: the monotonic clock is read once a turn,
// so that all that happens in a turn happens at one time. A program may have posted in the middle
// of a turn what completes at its end, so its completions are stamped with a clock that is read
// anew (rings/completion_host.h). Only the engine thread uses it.
#pragma once

#include "base/monotonic_clock.h"

namespace rocemu::daemon {

class EngineClock {
 public:
  TimeNs now_ns() const { return now_ns_; }
  void advance_to(TimeNs now_ns) { now_ns_ = now_ns; }

 private:
  TimeNs now_ns_ = 0;
};

}  // namespace rocemu::daemon
