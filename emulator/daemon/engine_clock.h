// The engine's time: CLOCK_MONOTONIC, read once a turn, so that all that happens in a turn happens
// at one time. The engine thread's.
#pragma once

#include <time.h>

#include "emulator/transport/work.h"

namespace rocemu::daemon {

inline transport::TimeNs monotonic_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<transport::TimeNs>(now.tv_sec) * 1'000'000'000u +
         static_cast<transport::TimeNs>(now.tv_nsec);
}

class EngineClock {
 public:
  transport::TimeNs now_ns() const { return now_ns_; }
  void advance_to(transport::TimeNs now_ns) { now_ns_ = now_ns; }

 private:
  transport::TimeNs now_ns_ = 0;
};

}  // namespace rocemu::daemon
