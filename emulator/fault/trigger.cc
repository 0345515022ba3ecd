#include "emulator/fault/trigger.h"

#include <algorithm>

namespace rocemu::fault {

Trigger::Trigger(const When& when, Nature nature, TimeNs now_ns, TimeNs nic_began_ns)
    : when_(when),
      nature_(nature),
      random_(when.seed),
      next_ns_(when.at_ns ? std::max(nic_began_ns + *when.at_ns, now_ns) : now_ns + when.after_ns) {
}

bool Trigger::spent() const {
  if (nature_ == Nature::filter)
    return strikes_ >= when_.times.value_or(when_.count > 0 ? 1 : UINT32_MAX);
  const bool repeats = when_.every_ns > 0;
  return begun_ >= when_.times.value_or(repeats ? UINT32_MAX : 1);
}

Trigger::Change Trigger::on_time(TimeNs now_ns) {
  Change change = Change::none;
  while (change == Change::none && next_ns_ <= now_ns) change = step(now_ns);
  return change;
}

// Precondition: something is due.
Trigger::Change Trigger::step(TimeNs now_ns) {
  if (state_ == State::active) {
    wait_for_next(now_ns);
    return Change::ends;
  }
  if (when_.counted != Counted::nothing) {
    counting_ = true;
    next_ns_ = kNever;
    return Change::none;
  }
  // Beginnings that were missed are not made up for.
  if (when_.every_ns > 0) next_ns_ += (now_ns - next_ns_) / when_.every_ns * when_.every_ns;
  return begin(next_ns_);
}

Trigger::Change Trigger::on_count(TimeNs now_ns) {
  if (!counting_ || ++counted_ < when_.count) return Change::none;
  counted_ = 0;
  return begin(now_ns);
}

// `now_ns` is when it was due, so that what repeats does not drift.
Trigger::Change Trigger::begin(TimeNs now_ns) {
  began_ns_ = now_ns;
  ++begun_;
  if (nature_ == Nature::moment) {
    const bool struck = random_.chance(when_.probability_ppm);
    if (struck) ++strikes_;
    wait_for_next(now_ns);
    return struck ? Change::begins : Change::none;
  }
  counting_ = false;
  if (nature_ == Nature::state) {
    if (!random_.chance(when_.probability_ppm)) {
      wait_for_next(now_ns);
      return Change::none;
    }
    ++strikes_;
  }
  state_ = State::active;
  next_ns_ = when_.for_ns > 0 ? now_ns + when_.for_ns : kNever;
  return Change::begins;
}

// It has struck, or its time has passed: it begins anew later, counts anew, or is over.
void Trigger::wait_for_next(TimeNs now_ns) {
  const bool counts = when_.counted != Counted::nothing && nature_ != Nature::filter;
  const bool again = when_.every_ns > 0 || (counts && when_.times);
  if (spent() || !again) {
    state_ = State::over;
    counting_ = false;
    next_ns_ = kNever;
    return;
  }
  state_ = State::waiting;
  counting_ = counts;
  next_ns_ = counts ? kNever : std::max(began_ns_ + when_.every_ns, now_ns);
}

bool Trigger::on_event() {
  if (nature_ != Nature::filter || state_ != State::active) return false;
  if (when_.count > 0 && counted_ + 1 < when_.count) {
    ++counted_;
    return false;
  }
  if (!random_.chance(when_.probability_ppm)) return false;
  ++strikes_;
  if (spent()) {
    state_ = State::over;
    next_ns_ = kNever;
  }
  return true;
}

}  // namespace rocemu::fault
