// A small seeded generator whose numbers are the same on every platform and compiler, which those
// of the standard distributions are not: xoshiro256**, its state filled by splitmix64.
#pragma once

#include <cstdint>

namespace rocemu {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = split_mix(seed);
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // 0 .. n-1; 0 when n is 0. The bias of the modulus is below 2^-32 for the n that are used.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  // low .. high, both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool chance(uint32_t parts_per_million) { return below(1'000'000) < parts_per_million; }

  // A seed for a generator of its own, so that one user's draws do not shift another's.
  uint64_t fork() { return next(); }

 private:
  static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }
  static uint64_t split_mix(uint64_t& seed) {
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

  uint64_t state_[4];
};

}  // namespace rocemu
