// A small seeded generator with the few distributions the programs draw from. The same seed gives
// the same run on every machine and standard library (splitmix64, Steele et al. 2014).
#pragma once

#include <bit>
#include <cstdint>

namespace rocemu::e2e {

constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    const uint64_t value = mix64(state_);
    state_ += 0x9e3779b97f4a7c15;
    return value;
  }
  uint32_t next32() { return static_cast<uint32_t>(next() >> 32); }
  // Uniform in [low, high], both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + next() % (high - low + 1); }
  uint32_t between32(uint32_t low, uint32_t high) {
    return static_cast<uint32_t>(between(low, high));
  }
  bool one_in(uint32_t n) { return next() % n == 0; }
  // 1..high with every power of two as likely as the next.
  uint32_t log_uniform(uint32_t high) {
    const auto bits = static_cast<uint32_t>(std::bit_width(high));
    const uint32_t low = 1u << between32(0, bits - 1);
    return between32(low, low > high / 2 ? high : 2 * low - 1);
  }

 private:
  uint64_t state_;
};

}  // namespace rocemu::e2e
