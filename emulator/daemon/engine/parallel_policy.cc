#include "emulator/daemon/engine/parallel_policy.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

// Divisible turns in a window of load: those in which each thread moves a burst take 20 to 200 us,
// the more threads there are the longer. Others do not count: an engine that waits for programs has
// thousands.
constexpr uint32_t kLoadedTurns = 8;

unsigned parts_for(const TurnDivision& division, const TurnShares& shares) {
  return division.by_program ? shares.programs : shares.devices;
}

}  // namespace

TurnDivision ParallelPolicy::next_turn(TimeNs now, uint64_t bytes_moved, const TurnShares& shares) {
  if (mode_ == ParallelMode::never) return {};
  if (mode_ != ParallelMode::automatic) return {max_threads_, mode_ == ParallelMode::programs};
  const bool divisible = std::max(shares.devices, shares.programs) >= 2;
  if (!under_load_ && !divisible && !in_window_) return {};
  if (now - window_began_ >= 2 * parameters_.window_ns) {
    // There was a pause, of which no way is the cause.
    give_up_trial(now);
    in_window_ = false;
  }
  if (!in_window_) begin_window(now, bytes_moved);
  divisible_turns_ += divisible;
  most_.devices = std::max(most_.devices, shares.devices);
  most_.programs = std::max(most_.programs, shares.programs);
  if (now - window_began_ >= parameters_.window_ns) end_window(now, bytes_moved);
  const unsigned parts = parts_for(way_, shares);
  return parts < 2 ? TurnDivision{} : TurnDivision{std::min(way_.threads, parts), way_.by_program};
}

void ParallelPolicy::begin_window(TimeNs now, uint64_t bytes_moved) {
  window_began_ = now;
  bytes_at_begin_ = bytes_moved;
  in_window_ = true;
  divisible_turns_ = 0;
  most_ = {};
}

void ParallelPolicy::end_window(TimeNs now, uint64_t bytes_moved) {
  if (divisible_turns_ < kLoadedTurns) {
    give_up_trial(now);
    way_ = {};
    under_load_ = in_window_ = false;
    return;
  }
  if (in_trial_) {
    rates_[trial_window_ % ways_.count][trial_window_ / ways_.count] =
        static_cast<double>(bytes_moved - bytes_at_begin_) /
        static_cast<double>(now - window_began_);
    if (++trial_window_ < ways_.count * kWindowsPerWay) {
      way_ = ways_.list[trial_window_ % ways_.count];
    } else {
      end_trial(now);
    }
  } else if (wants_trial(now)) {
    begin_trial();
  } else {
    way_ = winner_;
  }
  under_load_ = true;
  begin_window(now, bytes_moved);
}

ParallelPolicy::Ways ParallelPolicy::ways_for(const TurnShares& shares) const {
  Ways ways;
  for (unsigned half = 1; half < max_threads_; half *= 2) {
    const unsigned threads = std::min(2 * half, max_threads_);
    if (half < shares.devices) ways.add({threads, false});
    if (half < shares.programs) ways.add({threads, true});
  }
  return ways;
}

// Also when there is a way that the last trial did not have, and when nothing is left that its
// winner divides.
bool ParallelPolicy::wants_trial(TimeNs now) const {
  if (now >= next_trial_at_) return true;
  if (winner_.threads > 1 && parts_for(winner_, most_) < 2) return true;
  const Ways ways = ways_for(most_);
  return std::any_of(ways.list.begin(), ways.list.begin() + ways.count,
                     [this](const TurnDivision& way) { return !ways_.has(way); });
}

void ParallelPolicy::begin_trial() {
  in_trial_ = true;
  ways_ = ways_for(most_);
  trial_window_ = 0;
  way_ = {};
}

// Or one of its kind with fewer threads, or one thread, where the winner of the last trial is none
// of this one's.
unsigned ParallelPolicy::index_of_winner() const {
  unsigned index = 0;
  for (unsigned i = 1; i < ways_.count; ++i) {
    const TurnDivision& way = ways_.list[i];
    if (way.by_program == winner_.by_program && way.threads <= winner_.threads) index = i;
  }
  return index;
}

// The median of each way counts, since a window may have lost its CPU for a while. What was fastest
// the last time stays when nothing is faster, so that noise does not shorten the time to the next
// trial; but no more threads than needed.
void ParallelPolicy::end_trial(TimeNs now) {
  const auto median = [&](unsigned way) { return rates_[way][kWindowsPerWay / 2]; };
  for (unsigned way = 0; way < ways_.count; ++way) std::ranges::sort(rates_[way]);
  unsigned best = index_of_winner();
  for (unsigned fewer = 0; fewer < best; ++fewer)
    if (median(fewer) >= median(best)) best = fewer;
  for (unsigned more = best + 1; more < ways_.count; ++more)
    if (median(more) >= parameters_.gain_at_least * median(best)) best = more;
  const TurnDivision winner = ways_.list[best];
  hold_ns_ = winner == winner_ && hold_ns_ != 0
                 ? std::min(2 * hold_ns_, parameters_.longest_hold_ns)
                 : parameters_.shortest_hold_ns;
  winner_ = way_ = winner;
  in_trial_ = false;
  next_trial_at_ = now + hold_ns_;
}

// The next trial begins later, so that a load which comes and goes is not on trial all the time.
void ParallelPolicy::give_up_trial(TimeNs now) {
  if (!in_trial_) return;
  in_trial_ = false;
  way_ = winner_;
  next_trial_at_ = now + parameters_.shortest_hold_ns;
}

}  // namespace rocemu::daemon
