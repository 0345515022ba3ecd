// Doorbells is a context's doorbell page (verbs_shim/abi/rings.h), which tells to which of its QPs
// the program has posted. Only the engine thread uses it, once it is made.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/wire/types.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {

class Doorbells {
 public:
  // `memory` holds a rocemu_doorbell_page; `slots` is a multiple of 64, at most
  // ROCEMU_DOORBELL_SLOTS_MAX.
  Doorbells(SharedMemory memory, uint32_t slots);

  // Returns the lowest free slot, so that few words have to be looked at; empty when all are taken.
  std::optional<uint32_t> allocate(wire::Qpn qpn);
  void release(uint32_t slot);

  // True when something was rung since the last scan. This is the last look before the engine
  // sleeps.
  bool any_rung() const noexcept;

  // Calls ring(Qpn) for each slot that was rung. Bits of slots that belong to no QP are dropped.
  // Returns true when there was any.
  template <class Ring>
  bool scan(Ring&& ring) noexcept {
    bool any = false;
    for (uint32_t group = 0; group < used_groups(); ++group)
      if (__atomic_load_n(&page_.groups[group].summary, __ATOMIC_RELAXED) != 0)
        any |= scan_group(group, ring);
    return any;
  }

 private:
  static constexpr uint32_t kNobody = 0;  // QPN 0 is the subnet manager's, never a program's
  static constexpr uint32_t kGroupSlots = ROCEMU_DOORBELL_GROUP_SLOTS;

  uint32_t used_slots() const { return static_cast<uint32_t>(qpns_.size()); }
  uint32_t used_groups() const { return (used_slots() + kGroupSlots - 1) / kGroupSlots; }

  template <class Ring>
  bool scan_group(uint32_t index, Ring& ring) noexcept {
    bool any = false;
    rocemu_doorbell_group& group = page_.groups[index];
    // The summary is taken first: a bit that is set after that sets the summary again.
    uint64_t words = __atomic_exchange_n(&group.summary, 0, __ATOMIC_SEQ_CST);
    for (; words != 0; words &= words - 1) {
      const auto word = static_cast<uint32_t>(std::countr_zero(words));
      const uint32_t first_slot = index * kGroupSlots + word * 64;
      if (first_slot >= used_slots()) break;
      uint64_t slots = __atomic_exchange_n(&group.words[word], 0, __ATOMIC_SEQ_CST);
      for (; slots != 0; slots &= slots - 1) {
        const uint32_t slot = first_slot + static_cast<uint32_t>(std::countr_zero(slots));
        if (slot >= used_slots()) break;
        if (qpns_[slot] == kNobody) continue;
        ring(wire::Qpn{qpns_[slot]});
        any = true;
      }
    }
    return any;
  }

  SharedMemory memory_;
  rocemu_doorbell_page& page_;
  uint32_t slots_;
  std::vector<uint32_t> qpns_;  // by slot, up to the highest ever used
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_;
};

}  // namespace rocemu::daemon
