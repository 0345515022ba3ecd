// Completion events at unusual moments: late, so that one tells of many completions, and once more
// for nothing where the program has asked again meanwhile. Together with completions that come one
// by one there may be an event for each, too.
//
// Guarantees: no event comes to a program that has not asked for one, and none is lost: what was
// asked for comes once (IBTA vol 1, 11.4.2.2; ibv_req_notify_cq(3)). An event with nothing behind
// it is what a program that asks before it polls gets on any NIC (ibv_get_cq_event(3)).
#pragma once

#include <memory>

#include "emulator/shake/common/agenda.h"
#include "emulator/shake/common/dice.h"
#include "emulator/shake/queues/passing_ring.h"

namespace rocemu::shake {

class EventTiming final : public PassingRing, private Agenda::Item {
 public:
  EventTiming(std::unique_ptr<device::CompletionRing> inner, Agenda& agenda, Dice dice)
      : PassingRing(std::move(inner)), Item(agenda), dice_(dice) {}

  bool show() noexcept override;
  bool take_over(device::CompletionRing& old) noexcept override;

 private:
  void on_time() noexcept override;

  Dice dice_;
  bool waits_ = false;  // an event, for its time
  bool due_ = false;
};

}  // namespace rocemu::shake
