// The engine's time: CLOCK_MONOTONIC, read once a turn, so that all that happens in a turn happens
// at one time. A program sees the same clock, and may have posted in the middle of a turn what
// completes at its end: what it is told is read anew. The engine thread's.
#pragma once

#include <time.h>

#include "base/time.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

inline TimeNs monotonic_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<TimeNs>(now.tv_sec) * 1'000'000'000u + static_cast<TimeNs>(now.tv_nsec);
}

class EngineClock {
 public:
  using Source = TimeNs (*)();

  explicit EngineClock(Source source = &monotonic_now_ns) : source_(source) {}

  TimeNs now_ns() const { return now_ns_; }
  void advance_to(TimeNs now_ns) { now_ns_ = now_ns; }
  TimeNs read_ns() const { return source_(); }

 private:
  Source source_;
  TimeNs now_ns_ = 0;
};

}  // namespace rocemu::daemon
