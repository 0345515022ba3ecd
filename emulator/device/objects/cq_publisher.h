// CqPublisher shows new completions to the programs and sends the events they wait for, of all CQs
// at once after a burst. It knows the CQs that have something to show, and those whose event comes
// later: it is held back (ibv_modify_cq(3)), or its pipe is full.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/time.h"
#include "emulator/device/objects/cq.h"

namespace rocemu::device {

class CqPublisher {
 public:
  // CQs with something to show put themselves on it.
  std::vector<Cq*>& dirty() { return dirty_; }
  bool idle() const { return dirty_.empty(); }
  // The time at which the next event that comes later may be due; kNever when there is none.
  TimeNs next_held_event() const { return next_held_; }

  // Sets `overrun` to a CQ that has lost a completion and has not been told of before, if there is
  // one; to one, as the caller then looks at all QPs of the device. True when something is left to
  // publish: an event could not be written, or more has come meanwhile.
  bool publish(TimeNs now, Cq*& overrun) {
    if (next_held_ <= now) take_due(now);
    publishing_.swap(dirty_);
    for (Cq* cq : publishing_) cq->mark_clean();
    bool all_written = true;
    for (Cq* cq : publishing_) {
      all_written &= cq->publish(now);
      if (overrun != nullptr && cq->overrun_waits()) cq->mark_dirty();
      if (overrun == nullptr && cq->take_overrun()) overrun = cq;
      if (cq->due() != kNever) wait_for(*cq);
    }
    publishing_.clear();
    return !all_written || !dirty_.empty();
  }

  // The CQ goes away. One that is neither dirty nor held is on no list.
  void forget(Cq& cq) {
    if (cq.dirty()) std::erase(dirty_, &cq);
    if (cq.waits) std::erase(held_, &cq);
    if (held_.empty()) next_held_ = kNever;
  }

 private:
  void wait_for(Cq& cq) {
    next_held_ = std::min(next_held_, cq.due());
    if (std::exchange(cq.waits, true)) return;
    held_.push_back(&cq);
  }
  // CQs that are not due any more are forgotten only here, which costs a call for nothing.
  void take_due(TimeNs now) {
    next_held_ = kNever;
    std::erase_if(held_, [&](Cq* cq) {
      if (cq->due() <= now) cq->mark_dirty();
      cq->waits = cq->due() != kNever && cq->due() > now;
      if (cq->waits) next_held_ = std::min(next_held_, cq->due());
      return !cq->waits;
    });
  }

  std::vector<Cq*> dirty_;
  std::vector<Cq*> publishing_;
  std::vector<Cq*> held_;  // CQs whose events come later
  TimeNs next_held_ = kNever;
};

}  // namespace rocemu::device
