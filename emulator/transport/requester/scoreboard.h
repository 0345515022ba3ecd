// Scoreboard is what a requester with selective repeat knows of each PSN in flight
// (selective_repeat.h, rules 2, 3, 6, 7 and 8). It holds as many PSNs as it was begun for; of those
// behind them, which only the last READ can own, it knows that they are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "emulator/transport/requester/send_window.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class Scoreboard {
 public:
  static constexpr uint32_t kMaxPsns = 1024;

  // Evidence says how far packets have got for certain: one that is out and left before that is
  // lost.
  struct Evidence {
    uint32_t order = 0;     // the number of the newest sending that has arrived
    uint32_t answered = 0;  // what was asked for by sendings before this one has left the peer
    wire::Psn answers;      // all answers before it have left the peer
    // What was sent again up to this sending, for PSNs before this one, has been answered: one that
    // was sent again itself has.
    uint32_t again_order = 0;
    wire::Psn again_psn;
  };
  // An answer says that everything before `expected` has arrived, that `expected` itself is
  // `missing`, and which of those behind it have been taken, by bits as in a selective NAK.
  struct Report {
    wire::Psn expected;
    bool missing = false;
    std::span<const std::byte> taken;
  };

  // Nothing is in flight, and `una` is sent next. `psns`: a power of two, kMaxPsns at most.
  void begin(wire::Psn una, uint32_t psns);

  void on_sent(TimeNs now, wire::Psn psn, wire::Psn end, bool awaits_answer);
  void on_report(TimeNs now, const Report& report);
  // Everything before `expected` has arrived.
  void advance_expected(TimeNs now, wire::Psn expected);
  // Data of a READ or an atomic has come. False: it has been there before, or is too far ahead.
  bool on_answer(TimeNs now, wire::Psn psn);
  // Data of a READ has come that is too far ahead to be kept.
  void note_answer_beyond(wire::Psn psn);
  // The oldest PSN that is not over is now `una`.
  void slide(wire::Psn una);

  // Marks as lost what must have come before `evidence`. True: there was some.
  bool mark_lost(const Evidence& evidence);
  // True when mark_lost() would find some.
  bool would_lose(const Evidence& evidence) const;
  void give_up(wire::Psn psn);
  // Does what give_up() does, but not when `psn` was sent again lately.
  void give_up_unless_copied(wire::Psn psn, TimeNs now, TimeNs lately_ns);
  // All from `from` on that left by `sent_by` and of which nothing is known to have arrived.
  void give_up_older(wire::Psn from, TimeNs sent_by);
  // All whose answers the oldest's request asked for, too, and that have not come.
  void give_up_answers_of_oldest();
  void give_up_all();
  // What was sent until now tells nothing of round trips any more.
  void forget_times() { timed_order_ = order_; }
  // The peer has refused `from`, and may have dropped what came behind it.
  void give_up_from(wire::Psn from);
  // Notes that the packets in flight left in a form that the peer cannot place ahead of their turn.
  void note_plain();
  // `from` is missing at the peer, which has dropped what came behind it in that form.
  void give_up_plain(wire::Psn from);

  const Evidence& evidence() const { return evidence_; }
  wire::Psn expected() const { return expected_; }  // everything before it has arrived
  bool is_answered(wire::Psn psn) const;
  // True when `psn` is in flight and near enough to una() to have a slot of its own.
  bool is_held(wire::Psn psn) const { return !psn.before(una_) && psn.before(held_end()); }
  // The time since which the oldest PSN could have been answered: it was sent, and the answers to
  // READs and atomics before it, which go before its own for as long as they like, have come. When
  // it was sent once, its time begins when all before it is known to have arrived: its own answer
  // comes behind that. Empty when it is not out, or belongs to the answer to a READ or an atomic
  // itself, and was asked for once.
  std::optional<TimeNs> oldest_out_since() const;
  bool oldest_is_copy() const { return at(una_).again; }
  // The request has arrived that the oldest PSN is the answer to.
  bool oldest_is_reached() const { return at(una_).awaits_answer && at(una_).reached; }
  bool is_copy(wire::Psn psn) const { return is_held(psn) && at(psn).again; }

  wire::Psn una() const { return una_; }
  wire::Psn sent_end() const { return sent_end_; }
  uint32_t in_flight() const { return static_cast<uint32_t>(sent_end_.distance_from(una_)); }

  bool has_lost() const { return lost_ > 0; }
  wire::Psn first_lost() const;  // precondition: has_lost()
  // The number of PSNs of `request` that are to be asked for at once, from `psn` on.
  uint32_t run_from(const SendWindow::Request& request, wire::Psn psn) const;
  // The number of PSNs that are out, neither lost nor arrived.
  uint32_t out() const { return in_flight() - settled_ - lost_; }
  bool has_room_for(wire::Psn psn) const {
    return static_cast<uint32_t>(psn.distance_from(una_)) < slots_.size();
  }
  // True when `psn` is lost and may be asked for whatever is out: it is the oldest, the one that
  // the peer waits for, or one of a READ response.
  bool is_urgent(wire::Psn psn) const {
    return is_held(psn) && at(psn).state == State::lost &&
           (psn == una_ || psn == expected_ || at(psn).awaits_answer);
  }

  uint32_t take_delivered() { return std::exchange(delivered_, 0); }
  std::optional<TimeNs> take_round_trip() { return std::exchange(round_trip_, std::nullopt); }

 private:
  enum class State : uint8_t { out, lost, arrived, answered };
  struct Slot {
    TimeNs sent_at = 0;
    uint32_t order = 0;  // the number of its last sending
    State state = State::out;
    bool awaits_answer = false;
    bool reached = false;  // awaits_answer: its request has arrived
    bool again = false;    // sent more than once
    bool plain = false;    // sent in a form that cannot be placed ahead of its turn
    bool doubted = false;  // given up without evidence: an answer may be to an earlier sending
  };

  Slot& at(wire::Psn psn) { return slots_[psn.value() & (slots_.size() - 1)]; }
  const Slot& at(wire::Psn psn) const { return slots_[psn.value() & (slots_.size() - 1)]; }
  wire::Psn held_end() const;
  void set(Slot& slot, State state);
  void give_up(Slot& slot);
  void on_arrived(TimeNs now, wire::Psn psn);
  void note_in_turn(const Slot& slot);
  void mark_reached(wire::Psn psn);
  void note_delivery(TimeNs now, const Slot& slot);
  bool is_lost(wire::Psn psn, const Evidence& evidence) const;
  wire::Psn find_lost(wire::Psn psn, const Evidence& evidence) const;

  std::vector<Slot> slots_;  // one for each PSN from una_ on
  Slot tail_;                // stands for all PSNs behind those
  wire::Psn una_;
  wire::Psn sent_end_;
  wire::Psn expected_;
  uint32_t order_ = 0;
  uint32_t timed_order_ = 0;  // up to it round trips have been measured
  uint32_t lost_ = 0;
  uint32_t settled_ = 0;  // arrived or answered
  uint32_t delivered_ = 0;
  TimeNs answered_at_ = 0;  // the newest answer to a READ or an atomic
  TimeNs advanced_at_ = 0;  // when expected_ last went beyond una_
  Evidence evidence_;
  std::optional<TimeNs> round_trip_;
};

}  // namespace rocemu::transport
