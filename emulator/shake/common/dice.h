// The dice of one behaviour of one object: chances and times grow with the strength, and the seed
// repeats all of it. Chances and times are written as they are at a strength of 50 %.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace rocemu::shake {

class Dice {
 public:
  // `done` counts the chances that came up, and outlives this.
  Dice(uint64_t seed, uint32_t strength_percent, uint64_t& done)
      : random_(seed), strength_percent_(strength_percent), done_(&done) {}

  bool roll(uint32_t parts_per_million) {
    const uint64_t chance = uint64_t{parts_per_million} * strength_percent_ / kUsualPercent;
    const bool up = random_.chance(static_cast<uint32_t>(std::min<uint64_t>(chance, 1'000'000)));
    *done_ += up ? 1 : 0;
    return up;
  }
  // 1 to `most_ns`, short ones more often than long ones.
  TimeNs time_up_to(TimeNs most_ns) {
    const TimeNs most = std::max<TimeNs>(most_ns * strength_percent_ / kUsualPercent, 1);
    return 1 + random_.below(1 + random_.below(most));
  }
  uint64_t below(uint64_t n) { return random_.below(n); }
  uint64_t next() { return random_.next(); }

 private:
  static constexpr uint32_t kUsualPercent = 50;

  Random random_;
  uint32_t strength_percent_;
  uint64_t* done_;
};

}  // namespace rocemu::shake
