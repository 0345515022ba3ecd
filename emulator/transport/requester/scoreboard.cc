#include "emulator/transport/requester/scoreboard.h"

#include <algorithm>
#include <cassert>

namespace rocemu::transport {

void Scoreboard::begin(wire::Psn una, uint32_t psns) {
  *this = {};
  slots_.resize(psns);
  una_ = sent_end_ = expected_ = evidence_.answers = una;
}

wire::Psn Scoreboard::held_end() const {
  const wire::Psn end = una_ + static_cast<uint32_t>(slots_.size());
  return sent_end_.before(end) ? sent_end_ : end;
}

void Scoreboard::set(Slot& slot, State state) {
  const auto count = [this](State counted, uint32_t change) {
    if (counted == State::lost) lost_ += change;
    if (counted == State::arrived || counted == State::answered) settled_ += change;
  };
  count(slot.state, -1u);
  slot.state = state;
  count(state, 1);
}

void Scoreboard::on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool awaits_answer) {
  ++order_;
  const bool again = psn.before(sent_end_);
  if (end.after(sent_end_)) sent_end_ = end;
  const wire::Psn held = held_end();
  for (; psn != end && psn.before(held); ++psn) {
    Slot& slot = at(psn);
    if (slot.state == State::answered) continue;
    set(slot, State::out);
    slot.sent_at = now;
    slot.order = order_;
    slot.awaits_answer = awaits_answer;
    slot.again = again;
    slot.plain = false;
  }
  if (psn != end) tail_ = {now, order_, State::out, awaits_answer, false, again};
}

void Scoreboard::on_report(TimeNs now, const Report& report) {
  advance_expected(now, report.expected);
  for (size_t bit = 0; bit < report.taken.size() * 8; ++bit) {
    if ((report.taken[bit / 8] >> bit % 8 & std::byte{1}) == std::byte{0}) continue;
    const wire::Psn psn = report.expected + static_cast<uint32_t>(bit) + 1;
    if (is_held(psn)) on_arrived(now, psn);
  }
  if (report.missing && !report.expected.before(expected_) && is_held(report.expected)) {
    Slot& slot = at(report.expected);
    slot.reached = false;
    if (slot.state == State::arrived) set(slot, State::lost);
  }
  if (report.expected.after(evidence_.answers)) evidence_.answers = report.expected;
}

void Scoreboard::advance_expected(TimeNs now, wire::Psn expected) {
  if (!expected.after(expected_)) return;
  wire::Psn psn = expected_.before(una_) ? una_ : expected_;
  for (; psn != expected && is_held(psn); ++psn) {
    on_arrived(now, psn);
    note_in_turn(at(psn));
  }
  if (psn != expected) tail_.reached = true;
  expected_ = expected;
  if (expected.after(una_)) advanced_at_ = now;
}

void Scoreboard::on_arrived(TimeNs now, wire::Psn psn) {
  Slot& slot = at(psn);
  if (slot.awaits_answer) {
    if (!slot.reached) {
      mark_reached(psn);
      note_delivery(now, slot);
    }
  } else if (slot.state != State::arrived) {
    set(slot, State::arrived);
    ++delivered_;
    note_delivery(now, slot);
  }
}

// The peer has dealt with a packet in its turn, and has said so behind the answers to all that it
// was asked for before: what is asked for again passes other answers, and none passes it.
void Scoreboard::note_in_turn(const Slot& slot) {
  if (slot.again || static_cast<int32_t>(slot.order - evidence_.answered) <= 0) return;
  evidence_.answered = slot.order;
  // It stays near the orders of what is out, which wrap.
  if (static_cast<int32_t>(slot.order - evidence_.again_order) > 0)
    evidence_.again_order = slot.order;
}

// The request that asked for `psn` has arrived, and so asks for all that it asked for.
void Scoreboard::mark_reached(wire::Psn psn) {
  const uint32_t order = at(psn).order;
  for (; is_held(psn) && at(psn).order == order; ++psn) at(psn).reached = true;
  if (tail_.order == order) tail_.reached = true;
}

bool Scoreboard::on_answer(TimeNs now, wire::Psn psn) {
  if (!is_held(psn)) return false;
  Slot& slot = at(psn);
  if (!slot.awaits_answer || slot.state == State::answered) return false;
  advance_expected(now, psn);
  if (!slot.reached) mark_reached(psn);
  note_delivery(now, slot);
  note_in_turn(slot);
  if (!slot.again && psn.after(evidence_.answers)) evidence_.answers = psn;
  if (slot.again && !slot.doubted && static_cast<int32_t>(slot.order - evidence_.again_order) > 0) {
    evidence_.again_order = slot.order;
    evidence_.again_psn = psn;
  }
  set(slot, State::answered);
  ++delivered_;
  answered_at_ = now;
  return true;
}

// A packet that was sent again is evidence of nothing: its answer may be to the original, and all
// packets that left between the two would look lost.
void Scoreboard::note_delivery(TimeNs now, const Slot& slot) {
  if (slot.again) return;
  if (static_cast<int32_t>(slot.order - evidence_.order) > 0) evidence_.order = slot.order;
  if (static_cast<int32_t>(slot.order - timed_order_) <= 0) return;
  timed_order_ = slot.order;
  round_trip_ = now - slot.sent_at;
}

void Scoreboard::note_answer_beyond(wire::Psn psn) {
  // It has left the peer, too, and is not here.
  if (!tail_.again && (psn + 1).after(evidence_.answers)) evidence_.answers = psn + 1;
}

void Scoreboard::slide(wire::Psn una) {
  while (una_ != una) {
    Slot& slot = at(una_);
    set(slot, State::out);
    const wire::Psn next = una_ + static_cast<uint32_t>(slots_.size());
    slot = next.before(sent_end_) ? tail_ : Slot{};
    ++una_;
  }
  if (una_.after(sent_end_)) sent_end_ = una_;
}

bool Scoreboard::is_lost(wire::Psn psn, const Evidence& evidence) const {
  const Slot& slot = at(psn);
  if (slot.state != State::out) return false;
  if (!slot.reached && static_cast<int32_t>(evidence.order - slot.order) > 0) return true;
  if (!slot.awaits_answer) return false;
  if (!slot.again) return psn.before(evidence.answers);
  return static_cast<int32_t>(evidence.answered - slot.order) > 0 ||
         (static_cast<int32_t>(evidence.again_order - slot.order) >= 0 &&
          psn.before(evidence.again_psn));
}

// Finds the first PSN from `psn` on that is lost. PSNs are sent in their order for the first time,
// so that none behind one that is newer than the evidence is older.
wire::Psn Scoreboard::find_lost(wire::Psn psn, const Evidence& evidence) const {
  const wire::Psn held = held_end();
  for (; psn.before(held) && !is_lost(psn, evidence); ++psn) {
    const Slot& slot = at(psn);
    if (!slot.again && static_cast<int32_t>(slot.order - evidence.order) > 0 &&
        !psn.before(evidence.answers))
      return held;
  }
  return psn;
}

bool Scoreboard::would_lose(const Evidence& evidence) const {
  return find_lost(una_, evidence) != held_end();
}

bool Scoreboard::mark_lost(const Evidence& evidence) {
  const wire::Psn held = held_end();
  bool found = false;
  for (wire::Psn psn = find_lost(una_, evidence); psn != held; psn = find_lost(psn, evidence)) {
    set(at(psn), State::lost);
    found = true;
  }
  return found;
}

void Scoreboard::give_up(wire::Psn psn) {
  if (is_held(psn)) give_up(at(psn));
}

// For all that is known its answer is still to come.
void Scoreboard::give_up(Slot& slot) {
  set(slot, State::lost);
  slot.doubted = true;
}

void Scoreboard::give_up_unless_copied(wire::Psn psn, TimeNs now, TimeNs lately_ns) {
  if (is_held(psn) && !(at(psn).again && now - at(psn).sent_at < lately_ns)) give_up(psn);
}

void Scoreboard::give_up_older(wire::Psn from, TimeNs sent_by) {
  const wire::Psn held = held_end();
  for (wire::Psn psn = from.before(una_) ? una_ : from; psn.before(held); ++psn) {
    Slot& slot = at(psn);
    if (slot.state == State::out && !slot.reached && slot.sent_at <= sent_by) give_up(slot);
  }
}

void Scoreboard::give_up_answers_of_oldest() {
  const wire::Psn held = held_end();
  const uint32_t order = at(una_).order;
  for (wire::Psn psn = una_; psn.before(held) && at(psn).awaits_answer && at(psn).order == order;
       ++psn) {
    if (at(psn).state == State::out) give_up(at(psn));
  }
}

void Scoreboard::give_up_all() {
  const wire::Psn held = held_end();
  for (wire::Psn psn = una_; psn.before(held); ++psn)
    if (at(psn).state == State::out) give_up(at(psn));
  if (una_ != sent_end_) give_up(una_);
}

void Scoreboard::give_up_from(wire::Psn from) {
  give_up(from);
  const wire::Psn held = held_end();
  for (wire::Psn psn = from + 1; psn.before(held); ++psn) {
    Slot& slot = at(psn);
    if (slot.state == State::out && !slot.reached) give_up(slot);
  }
}

void Scoreboard::note_plain() {
  const wire::Psn held = held_end();
  for (wire::Psn psn = una_; psn.before(held); ++psn) at(psn).plain = true;
}

void Scoreboard::give_up_plain(wire::Psn from) {
  const wire::Psn held = held_end();
  for (wire::Psn psn = from.before(una_) ? una_ : from; psn.before(held); ++psn) {
    Slot& slot = at(psn);
    if (slot.plain && slot.state == State::out && !slot.reached) give_up(slot);
  }
}

bool Scoreboard::is_answered(wire::Psn psn) const {
  return is_held(psn) && at(psn).state == State::answered;
}

std::optional<TimeNs> Scoreboard::oldest_out_since() const {
  const Slot& oldest = at(una_);
  if (una_ == sent_end_ || oldest.state != State::out) return std::nullopt;
  if (oldest.awaits_answer) return oldest.again ? std::optional(oldest.sent_at) : std::nullopt;
  const TimeNs since = std::max(oldest.sent_at, answered_at_);
  return oldest.again ? since : std::max(since, advanced_at_);
}

wire::Psn Scoreboard::first_lost() const {
  wire::Psn psn = una_;
  while (at(psn).state != State::lost) ++psn;
  return psn;
}

uint32_t Scoreboard::run_from(const SendWindow::Request& request, wire::Psn psn) const {
  const Slot& first = at(psn);
  if (!first.awaits_answer) return 1;
  const auto rest = static_cast<uint32_t>(request.end_psn().distance_from(psn));
  if (!first.reached) return rest;
  uint32_t run = 1;
  while (run < rest && is_held(psn + run) && at(psn + run).state == State::lost) ++run;
  return run;
}

}  // namespace rocemu::transport
