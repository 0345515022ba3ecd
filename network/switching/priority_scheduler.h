// Chooses the queue of a port that sends next: the highest strict one, else by deficit round robin
// (Shreedhar and Varghese, 1995) among the others.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "network/switching/settings.h"

namespace rocemu::network {

class PriorityScheduler {
 public:
  // `ready` has a bit for each queue that has a frame and may send; not 0. head_bytes(priority) is
  // the length of its first frame. Returns the priority whose first frame leaves now.
  template <class HeadBytes>
  unsigned pick(const SchedulingSettings& settings, unsigned ready, HeadBytes&& head_bytes) {
    if (const unsigned strict = ready & settings.strict; strict != 0)
      return static_cast<unsigned>(std::bit_width(strict)) - 1;
    for (;; step()) {
      if ((ready >> turn_ & 1) == 0) {
        deficit_bytes_[turn_] = 0;
        continue;
      }
      if (!granted_) {
        deficit_bytes_[turn_] += settings.weights[turn_] * settings.quantum_bytes;
        granted_ = true;
      }
      if (const uint32_t length = head_bytes(turn_); length <= deficit_bytes_[turn_]) {
        deficit_bytes_[turn_] -= length;
        return turn_;
      }
    }
  }

 private:
  void step() noexcept {
    turn_ = (turn_ + 1) % kPriorities;
    granted_ = false;
  }

  std::array<uint32_t, kPriorities> deficit_bytes_{};
  uint8_t turn_ = 0;
  bool granted_ = false;  // its quantum of this round
};

}  // namespace rocemu::network
