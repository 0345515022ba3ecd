// Time as every part of the NIC counts it. Where it comes from is the caller's affair: the engine
// reads a clock once a turn, the simulator counts by itself.
#pragma once

#include <cstdint>

namespace rocemu {

// Nanoseconds of a monotonic clock that the caller keeps, or a length of time in nanoseconds.
using TimeNs = uint64_t;

// A point in time that never comes: no deadline.
inline constexpr TimeNs kNever = ~TimeNs{0};

}  // namespace rocemu
