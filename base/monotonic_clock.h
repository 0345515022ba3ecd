// The clock that rocemud and the programs it serves have in common: CLOCK_MONOTONIC.
#pragma once

#include <time.h>

#include "base/time.h"

namespace rocemu {

inline TimeNs monotonic_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<TimeNs>(now.tv_sec) * 1'000'000'000u + static_cast<TimeNs>(now.tv_nsec);
}

}  // namespace rocemu
