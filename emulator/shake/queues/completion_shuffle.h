// Completions come late, in clumps, and those of different work queues in any order; the same for
// those of a QP that has failed: the failed request and the flushes of its send and its receive
// queue are mixed.
//
// Guarantees: completions of one work queue keep their order (IBTA vol 1, 10.8.5). All are shown
// before an async event that may tell of them, and before a QP is destroyed or reset
// (release_all()): none comes of a QP that has gone.
//
// A completion that is shown in time is shown in the turn in which it came, as without this.
#pragma once

#include <cstdint>
#include <memory>

#include "emulator/shake/common/agenda.h"
#include "emulator/shake/common/dice.h"
#include "emulator/shake/queues/completion_holders.h"
#include "emulator/shake/queues/held_completions.h"
#include "emulator/shake/queues/passing_ring.h"

namespace rocemu::shake {

class CompletionShuffle final : public PassingRing,
                                private Agenda::Item,
                                private CompletionHolders::Holder {
 public:
  // The completions that are shuffled.
  struct Which {
    bool failures = false;
    bool successes = false;
  };
  // `entries`: how many completions the program may leave unread.
  CompletionShuffle(std::unique_ptr<device::CompletionRing> inner, uint32_t entries, Which which,
                    CompletionHolders& holders, Agenda& agenda, Dice dice)
      : PassingRing(std::move(inner)),
        Item(agenda),
        holders_(holders),
        entries_(entries),
        which_(which),
        dice_(dice) {}
  ~CompletionShuffle() override {
    if (owner() != nullptr) holders_.remove(*this);
  }

  void set_owner(device::RingOwner& owner) noexcept override {
    PassingRing::set_owner(owner);
    holders_.add(*this);
  }
  bool push(const transport::Completion& completion) noexcept override;
  bool show() noexcept override;
  // Completions that `old` holds are shown there before.
  bool take_over(device::CompletionRing& old) noexcept override;
  bool prepare_to_take_over(device::CompletionRing& old) noexcept override;

  // Shows all that is held.
  void release_all() noexcept override;

 private:
  void on_time() noexcept override;
  TimeNs draw_due();
  void release(TimeNs until) noexcept;

  CompletionHolders& holders_;
  uint32_t entries_;
  Which which_;
  Dice dice_;
  HeldCompletions held_;
  TimeNs closed_until_ = 0;  // a clump gathers until then
  bool event_wanted_ = false;
};

}  // namespace rocemu::shake
