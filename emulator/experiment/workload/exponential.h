// Random times between arrivals, of whole numbers alone: the logarithm of a mathematics library is
// not the same to the last bit everywhere, and one bit is another experiment.
#pragma once

#include <bit>
#include <cstdint>

#include "base/random.h"

namespace rocemu::experiment {

// -log2(x / 2^64) in units of 2^-32, rounded up. Precondition: x is not 0. By squaring: whenever
// the square of a number from 1 to 2 is 2 or more, the next bit of its logarithm is set.
constexpr uint64_t minus_log2(uint64_t x) {
  const int shift = std::countl_zero(x);
  uint64_t mantissa = x << shift;  // 2^63 stands for 1
  uint64_t fraction = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned __int128 square = static_cast<unsigned __int128>(mantissa) * mantissa;
    const bool set = (square >> 127) != 0;
    mantissa = static_cast<uint64_t>(square >> (set ? 64 : 63));
    if (set) fraction |= uint64_t{1} << bit;
  }
  return (static_cast<uint64_t>(shift + 1) << 32) - fraction;
}

// A time that is exponentially distributed about `mean`, in the same units.
inline uint64_t exponential(uint64_t mean, Random& random) {
  constexpr uint64_t kLn2 = 2'977'044'472;  // in units of 2^-32
  const uint64_t x = random.next();
  const unsigned __int128 natural =
      static_cast<unsigned __int128>(minus_log2(x == 0 ? 1 : x)) * kLn2 >> 32;
  return static_cast<uint64_t>(natural * mean >> 32);
}

}  // namespace rocemu::experiment
