#include "emulator/daemon/engine/pace/idle_policy.h"

#include <algorithm>
#include <utility>

namespace rocemu::daemon {

IdlePolicy::Action IdlePolicy::on_empty_turn(TimeNs now, bool program_waits) {
  busy_since_ = 0;
  if (empty_turns_++ == 0) idle_since_ = now;
  if (std::exchange(kept_awake_, false)) return Action::yield;
  if (timed_out_) return Action::sleep;
  if (program_waits) return block_mode(now) ? Action::sleep : Action::yield;
  if (block_mode(now))
    return now - idle_since_ >= parameters_.block_sleep_after_ns ? Action::sleep : Action::poll;
  if (now - idle_since_ >= parameters_.sleep_after_ns) return Action::sleep;
  return empty_turns_ % parameters_.turns_per_yield == 0 ? Action::yield : Action::poll;
}

// One long yield alone may be anybody's: a program that sets something up, another one on the
// machine. Block mode that ends and is needed again at once doubles its length.
void IdlePolicy::on_yield(TimeNs before, TimeNs after) {
  if (after - before <= parameters_.long_yield_ns) return;
  const bool again = block_until_ != 0 && before < block_until_ + parameters_.recent_ns;
  const bool second = long_yield_at_ != 0 && before < long_yield_at_ + parameters_.recent_ns;
  long_yield_at_ = after;
  if (!again && !second) return;
  block_length_ns_ =
      again ? std::min(block_length_ns_ * 2, parameters_.block_max_ns) : parameters_.block_min_ns;
  block_until_ = after + block_length_ns_;
}

}  // namespace rocemu::daemon
