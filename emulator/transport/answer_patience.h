// AnswerPatience is for whoever drives an endpoint, and says by when the answers to what it has
// sent will have been looked at (Endpoint::on_timeout). A requester whose ACK timeout ends while
// the answer lies in a socket, or while the device that is to send it has not had its turn either,
// sends everything again in vain and loses a retry by it.
//
// 1. When a turn comes later than it should, by kAwayNs or more (the thread had no core, or the
//    turns of others were long), there is time for as long again, up to kMaxPatienceNs.
// 2. A turn that did not take all that the port had leaves answers unread, and the next turns are
//    to take them. That goes on for kMaxBacklogNs, which is longer than a full socket takes to be
//    read. A port that has more for even longer has it for ever, and what is lost has to be sent
//    again then, too.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace rocemu::transport {

class AnswerPatience {
 public:
  static constexpr TimeNs kAwayNs = 1'000'000;
  static constexpr TimeNs kMaxPatienceNs = 5'000'000;
  static constexpr TimeNs kBacklogNs = 1'000'000;  // until the next look
  static constexpr TimeNs kMaxBacklogNs = 50'000'000;

  // The device takes a turn, which should have come at `deadline` at the latest. `unread`: its port
  // has more than this turn took.
  void on_turn(TimeNs now, TimeNs deadline, bool unread) {
    const TimeNs last = std::exchange(last_turn_, now);
    const TimeNs late = now - (deadline <= now ? std::max(last, deadline) : last);
    if (late >= kAwayNs) patient_until_ = now + std::min(late, kMaxPatienceNs);
    if (!unread) {
      backlog_since_ = kNever;
    } else if (backlog_since_ == kNever) {
      backlog_since_ = now;
    }
  }

  // The time by which all that has arrived will have been looked at; not after `now` when it has
  // been.
  TimeNs answers_by(TimeNs now) const {
    const bool backlog = backlog_since_ != kNever && now - backlog_since_ < kMaxBacklogNs;
    return std::max(patient_until_, backlog ? now + kBacklogNs : 0);
  }

 private:
  TimeNs last_turn_ = 0;
  TimeNs patient_until_ = 0;
  TimeNs backlog_since_ = kNever;
};

}  // namespace rocemu::transport
