#include "emulator/daemon/engine/parallel_policy.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

// Divisible turns in a window of load: those in which two devices each send a full burst take some
// 20 to 60 us. Others do not count: an engine that waits for programs has thousands.
constexpr uint32_t kLoadedTurns = 20;

}  // namespace

bool ParallelPolicy::next_turn(TimeNs now, uint64_t bytes_moved, bool divisible) {
  if (mode_ != ParallelMode::automatic) return mode_ == ParallelMode::always;
  if (!loaded_ && !divisible && !in_window_) return false;
  if (now - window_began_ >= 2 * parameters_.window_ns) {
    // There was a pause, of which neither way is the cause.
    give_up_trial(now);
    in_window_ = false;
  }
  if (!in_window_) begin_window(now, bytes_moved);
  divisible_turns_ += divisible;
  if (now - window_began_ >= parameters_.window_ns) end_window(now, bytes_moved);
  return together_ && divisible;
}

void ParallelPolicy::begin_window(TimeNs now, uint64_t bytes_moved) {
  window_began_ = now;
  bytes_at_begin_ = bytes_moved;
  in_window_ = true;
  divisible_turns_ = 0;
}

void ParallelPolicy::end_window(TimeNs now, uint64_t bytes_moved) {
  if (divisible_turns_ < kLoadedTurns) {
    give_up_trial(now);
    loaded_ = together_ = in_window_ = false;
    return;
  }
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

// The median of each way counts, since a window may have lost its CPU for a while.
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

// The next trial begins later, so that a load which comes and goes is not on trial all the time.
void ParallelPolicy::give_up_trial(TimeNs now) {
  if (!in_trial()) return;
  trial_window_ = kTrialWindows;
  together_ = winner_;
  next_trial_at_ = now + parameters_.shortest_hold_ns;
}

}  // namespace rocemu::daemon
