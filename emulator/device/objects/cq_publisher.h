// CqPublisher shows new completions to the programs and sends the events they wait for, of all CQs
// at once after a burst. It knows the CQs that have something to show, and the moderated ones whose
// event is held back (ibv_modify_cq(3)).
#pragma once

#include <algorithm>
#include <vector>

#include "base/time.h"
#include "emulator/device/objects/cq.h"

namespace rocemu::device {

class CqPublisher {
 public:
  // CQs with something to show put themselves on it.
  std::vector<Cq*>& dirty() { return dirty_; }
  bool idle() const { return dirty_.empty(); }
  // When the next event that is held back is due; kNever when there is none.
  TimeNs next_held_event() const { return next_held_; }

  // Calls `on_overrun` with each CQ that has lost a completion and has not been told of before.
  // True when something is left to publish: an event could not be written, or more has come
  // meanwhile.
  template <class OnOverrun>
  bool publish(TimeNs now, OnOverrun on_overrun) {
    if (next_held_ <= now)
      for (Cq* cq : held_)
        if (cq->held_until() <= now) cq->mark_dirty();
    publishing_.swap(dirty_);
    for (Cq* cq : publishing_) cq->mark_clean();
    for (Cq* cq : publishing_) {
      if (!cq->publish(now)) cq->mark_dirty();
      if (cq->take_overrun()) on_overrun(*cq);
      if (cq->held_until() != kNever && std::ranges::find(held_, cq) == held_.end())
        held_.push_back(cq);
    }
    publishing_.clear();
    forget_sent_events();
    return !dirty_.empty();
  }

  // The CQ goes away. One that is neither dirty nor held is on no list.
  void forget(Cq& cq) {
    if (!cq.dirty() && cq.held_until() == kNever) return;
    std::erase(dirty_, &cq);
    std::erase(held_, &cq);
    forget_sent_events();  // when the next is due may have been this one's
  }

 private:
  void forget_sent_events() {
    std::erase_if(held_, [](const Cq* cq) { return cq->held_until() == kNever; });
    next_held_ = kNever;
    for (const Cq* cq : held_) next_held_ = std::min(next_held_, cq->held_until());
  }

  std::vector<Cq*> dirty_;
  std::vector<Cq*> publishing_;
  std::vector<Cq*> held_;  // whose events are held back
  TimeNs next_held_ = kNever;
};

}  // namespace rocemu::device
