// What the parts of the connection manager share.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "base/time.h"
#include "emulator/wire/mad.h"
#include "emulator/wire/types.h"

namespace rocemu::cm {

template <class T>
using Result = tl::expected<T, int>;  // int: a positive errno

// The way of a MAD: out of (or into) one of the NIC's devices, between two addresses.
struct Route {
  uint32_t device = 0;
  wire::Gid local{};
  wire::Gid remote{};
};

struct OutgoingMad {
  Route route;
  wire::MadBytes mad;
};

// The time that a coded timeout of the CM stands for: 4.096 us * 2^code.
constexpr TimeNs coded_time_ns(uint8_t code) { return TimeNs{4096} << (code & 31); }

// Numbers nobody can guess from outside, and that a seed repeats (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace rocemu::cm
