// Lengths of time for tests.
#pragma once

#include "base/time.h"

namespace rocemu {

inline constexpr TimeNs kUs = 1000;
inline constexpr TimeNs kMs = 1000 * kUs;

}  // namespace rocemu
