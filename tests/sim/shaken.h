// Scenarios under a NIC that does what the specification permits and hardware seldom does
// (emulator/shake), drawn apart from the plan, so that seeds keep their meaning.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "emulator/shake/common/agenda.h"
#include "emulator/shake/common/settings.h"
#include "emulator/shake/queues/first_rnr.h"
#include "emulator/shake/queues/late_doorbells.h"
#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"

namespace rocemu::sim_scenarios {

// Draws behaviours for a share of scenarios; for the others nothing is chosen.
shake::Settings draw_shake(uint64_t scenario_seed);

// False: what shakes memory does not know of lent bytes, and frames that are held back keep them.
bool may_lend(const shake::Settings& settings);

// A ShakenHost shakes one host; its own users' seeds follow each other.
class ShakenHost {
 public:
  ShakenHost(const shake::Settings& settings, uint32_t host) : settings_(settings), host_(host) {}

  sim::EndpointNode::Decorate memory();
  // Holds back what arrives at the node.
  void delay_arrivals(sim::EndpointNode& node);
  // True when that may hold back anything: a NIC sends no runs (wire/run.h) to one that is shaken
  // so.
  bool looks_at_frames() const;
  // Null: the behaviour was not chosen.
  std::optional<shake::Dice> dice_for(shake::Behaviour behaviour);

 private:
  shake::Settings settings_;
  uint64_t host_;
  uint64_t users_ = 0;
  shake::Counts counts_{};
};

// The send queue of a QP with late doorbells, in virtual time.
class ShakenSends final : public transport::SendQueue {
 public:
  ShakenSends(transport::SendQueue& inner, sim::Fabric& fabric, shake::Dice dice,
              std::function<void()> ring)
      : fabric_(fabric), late_(inner, agenda_, dice, std::move(ring)) {}

  bool pop(transport::SendWork& work) noexcept override {
    // What is due rings the doorbell, and not in the midst of this: the event from before does it.
    const TimeNs now = fabric_.now_ns();
    if (agenda_.next() > now) agenda_.tick(now);
    const bool popped = late_.pop(work);
    if (agenda_.next() != kNever)
      fabric_.at(agenda_.next(), [this] { agenda_.tick(fabric_.now_ns()); });
    return popped;
  }
  void release(uint32_t count) noexcept override { late_.release(count); }

 private:
  sim::Fabric& fabric_;
  shake::Agenda agenda_;
  shake::LateDoorbells late_;
};

// The receive queue of a QP whose receiver is not ready at first. `in_error`: the QP is.
class ShakenReceives final : public transport::ReceiveQueue {
 public:
  ShakenReceives(transport::ReceiveQueue& inner, shake::Dice dice, std::function<bool()> in_error)
      : rnr_(inner, dice), in_error_(std::move(in_error)) {
    rnr_.on_state(transport::QpState::ready_to_receive);
  }

  bool pop(transport::ReceiveWork& work) noexcept override {
    if (in_error_()) rnr_.on_state(transport::QpState::error);
    return rnr_.pop(work);
  }

 private:
  shake::FirstRnr rnr_;
  std::function<bool()> in_error_;
};

}  // namespace rocemu::sim_scenarios
