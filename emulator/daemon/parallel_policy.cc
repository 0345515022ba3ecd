#include "emulator/daemon/parallel_policy.h"

#include <algorithm>

namespace rocemu::daemon {

bool ParallelPolicy::next_turn(TimeNs now, uint64_t bytes_moved, bool divisible) {
  if (mode_ != ParallelMode::automatic) return mode_ == ParallelMode::always;
  if (!loaded_ && !divisible) return false;
  if (turns_ == 0) begin_window(now, bytes_moved);
  ++turns_;
  divisible_turns_ += divisible;
  if (now - window_began_ >= parameters_.window_ns) end_window(now, bytes_moved);
  return together_ && divisible;
}

void ParallelPolicy::begin_window(TimeNs now, uint64_t bytes_moved) {
  window_began_ = now;
  bytes_at_begin_ = bytes_moved;
  turns_ = 0;
  divisible_turns_ = 0;
}

void ParallelPolicy::end_window(TimeNs now, uint64_t bytes_moved) {
  if (divisible_turns_ < turns_ / 2) return load_ended();
  if (in_trial()) {
    rates_[trial_window_++] = static_cast<double>(bytes_moved - bytes_at_begin_) /
                              static_cast<double>(now - window_began_);
    if (in_trial()) {
      together_ = trial_window_ % 2 != 0;
    } else {
      end_trial(now);
    }
  } else if (now >= next_trial_at_) {
    begin_trial();
  } else {
    together_ = winner_;
  }
  loaded_ = true;
  begin_window(now, bytes_moved);
}

void ParallelPolicy::begin_trial() {
  trial_window_ = 0;
  together_ = false;
}

// The middle one of each way: a window may have lost its core for a while.
void ParallelPolicy::end_trial(TimeNs now) {
  std::array<double, kWindowsPerWay> alone, together;
  for (unsigned i = 0; i < kWindowsPerWay; ++i) {
    alone[i] = rates_[2 * i];
    together[i] = rates_[2 * i + 1];
  }
  std::ranges::sort(alone);
  std::ranges::sort(together);
  constexpr unsigned kMiddle = kWindowsPerWay / 2;
  const bool winner = together[kMiddle] >= parameters_.gain_at_least * alone[kMiddle];
  hold_ns_ = winner == winner_ && hold_ns_ != 0
                 ? std::min(2 * hold_ns_, parameters_.longest_hold_ns)
                 : parameters_.shortest_hold_ns;
  winner_ = together_ = winner;
  next_trial_at_ = now + hold_ns_;
}

void ParallelPolicy::load_ended() {
  loaded_ = together_ = false;
  trial_window_ = kTrialWindows;
  turns_ = 0;
}

}  // namespace rocemu::daemon
