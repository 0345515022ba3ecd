// The numbers that a connection manager draws, made from a seed, so that a test repeats.
#pragma once

#include "base/random.h"
#include "emulator/cm/types.h"

namespace rocemu::cm::test {

inline RandomSource seeded(uint64_t seed) {
  return [random = Random(seed)]() mutable { return random.next(); };
}

}  // namespace rocemu::cm::test
