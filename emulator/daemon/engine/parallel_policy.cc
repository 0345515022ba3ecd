#include "emulator/daemon/engine/parallel_policy.h"

#include <algorithm>
#include <bit>

namespace rocemu::daemon {
namespace {

// Divisible turns in a window of load: those in which each thread moves a burst take 20 to 200 us,
// the more threads there are the longer. Others do not count: an engine that waits for programs has
// thousands.
constexpr uint32_t kLoadedTurns = 8;

}  // namespace

unsigned ParallelPolicy::next_turn(TimeNs now, uint64_t bytes_moved, unsigned shares) {
  if (mode_ != ParallelMode::automatic) return mode_ == ParallelMode::never ? 1 : max_threads_;
  const bool divisible = shares >= 2;
  if (!under_load_ && !divisible && !in_window_) return 1;
  if (now - window_began_ >= 2 * parameters_.window_ns) {
    // There was a pause, of which neither way is the cause.
    give_up_trial(now);
    in_window_ = false;
  }
  if (!in_window_) begin_window(now, bytes_moved);
  divisible_turns_ += divisible;
  most_shares_ = std::max(most_shares_, shares);
  if (now - window_began_ >= parameters_.window_ns) end_window(now, bytes_moved);
  return divisible ? std::min(threads_, shares) : 1;
}

void ParallelPolicy::begin_window(TimeNs now, uint64_t bytes_moved) {
  window_began_ = now;
  bytes_at_begin_ = bytes_moved;
  in_window_ = true;
  divisible_turns_ = 0;
  most_shares_ = 0;
}

void ParallelPolicy::end_window(TimeNs now, uint64_t bytes_moved) {
  if (divisible_turns_ < kLoadedTurns) {
    give_up_trial(now);
    threads_ = 1;
    under_load_ = in_window_ = false;
    return;
  }
  if (in_trial_) {
    rates_[trial_window_ % ways_][trial_window_ / ways_] =
        static_cast<double>(bytes_moved - bytes_at_begin_) /
        static_cast<double>(now - window_began_);
    if (++trial_window_ < ways_ * kWindowsPerWay) {
      threads_ = threads_of(trial_window_ % ways_);
    } else {
      end_trial(now);
    }
  } else if (now >= next_trial_at_ || ways_for(most_shares_) > ways_) {
    begin_trial();
  } else {
    threads_ = winner_;
  }
  under_load_ = true;
  begin_window(now, bytes_moved);
}

unsigned ParallelPolicy::ways_for(unsigned shares) const {
  const unsigned most = std::min(max_threads_, shares);
  return 1 + static_cast<unsigned>(std::bit_width(most - 1));
}

void ParallelPolicy::begin_trial() {
  in_trial_ = true;
  ways_ = ways_for(most_shares_);
  trial_window_ = 0;
  threads_ = 1;
}

// The median of each way counts, since a window may have lost its CPU for a while. What was fastest
// the last time stays when nothing is faster, so that noise does not shorten the time to the next
// trial; but no more threads than needed.
void ParallelPolicy::end_trial(TimeNs now) {
  const auto median = [&](unsigned way) { return rates_[way][kWindowsPerWay / 2]; };
  for (unsigned way = 0; way < ways_; ++way) std::ranges::sort(rates_[way]);
  unsigned best = std::min(ways_for(winner_), ways_) - 1;
  for (unsigned fewer = 0; fewer < best; ++fewer)
    if (median(fewer) >= median(best)) best = fewer;
  for (unsigned more = best + 1; more < ways_; ++more)
    if (median(more) >= parameters_.gain_at_least * median(best)) best = more;
  const unsigned winner = threads_of(best);
  hold_ns_ = winner == winner_ && hold_ns_ != 0
                 ? std::min(2 * hold_ns_, parameters_.longest_hold_ns)
                 : parameters_.shortest_hold_ns;
  winner_ = threads_ = winner;
  in_trial_ = false;
  next_trial_at_ = now + hold_ns_;
}

// The next trial begins later, so that a load which comes and goes is not on trial all the time.
void ParallelPolicy::give_up_trial(TimeNs now) {
  if (!in_trial_) return;
  in_trial_ = false;
  threads_ = winner_;
  next_trial_at_ = now + parameters_.shortest_hold_ns;
}

}  // namespace rocemu::daemon
