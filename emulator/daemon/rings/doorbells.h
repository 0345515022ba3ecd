// Doorbells is a context's doorbell page (verbs_shim/abi/rings.h), which tells to which of its QPs
// the program has posted. Only the engine thread uses it, once it is made.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
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

  // Calls ring(Qpn) for each slot that was rung, of so many slots at most, and a word's more: a
  // program can ring all of them again and again. The next scan begins where this one has ended.
  // Bits of slots that belong to no QP are dropped. Returns how many were looked at.
  template <class Ring>
  uint32_t scan(uint32_t most, Ring&& ring) noexcept {
    uint32_t looked_at = 0;
    const uint32_t groups = used_groups();
    if (groups == 0) return 0;
    const uint32_t start = std::exchange(next_word_, kNoWord);
    const uint32_t first = start / kGroupWords < groups ? start : 0;
    const uint64_t behind = ~uint64_t{0} << (first % kGroupWords);
    // The first group's words in front of that come last.
    for (uint32_t i = 0; i <= groups && next_word_ == kNoWord; ++i) {
      const uint32_t group = (first / kGroupWords + i) % groups;
      const uint64_t words = i == 0 ? behind : i == groups ? ~behind : ~uint64_t{0};
      if ((__atomic_load_n(&page_.groups[group].summary, __ATOMIC_RELAXED) & words) == 0) continue;
      if (looked_at < most) {
        looked_at += scan_group(group, words, most - looked_at, ring);
      } else {
        next_word_ = group * kGroupWords;
      }
    }
    return looked_at;
  }

 private:
  static constexpr uint32_t kNobody = 0;  // QPN 0 is the subnet manager's, never a program's
  static constexpr uint32_t kGroupSlots = ROCEMU_DOORBELL_GROUP_SLOTS;
  static constexpr uint32_t kGroupWords = kGroupSlots / 64;
  static constexpr uint32_t kNoWord = UINT32_MAX;

  uint32_t used_slots() const { return static_cast<uint32_t>(qpns_.size()); }
  uint32_t used_groups() const { return (used_slots() + kGroupSlots - 1) / kGroupSlots; }

  // Of the words of `wanted`.
  template <class Ring>
  uint32_t scan_group(uint32_t index, uint64_t wanted, uint32_t most, Ring& ring) noexcept {
    uint32_t looked_at = 0;
    rocemu_doorbell_group& group = page_.groups[index];
    // The summary is taken first: a bit that is set after that sets the summary again.
    // All of it at once, which one instruction does, unless a scan begins in the middle.
    uint64_t words = wanted == ~uint64_t{0}
                         ? __atomic_exchange_n(&group.summary, 0, __ATOMIC_SEQ_CST)
                         : __atomic_fetch_and(&group.summary, ~wanted, __ATOMIC_SEQ_CST) & wanted;
    for (; words != 0; words &= words - 1) {
      const auto word = static_cast<uint32_t>(std::countr_zero(words));
      const uint32_t first_slot = index * kGroupSlots + word * 64;
      if (first_slot >= used_slots()) break;
      if (looked_at >= most) {
        __atomic_fetch_or(&group.summary, words, __ATOMIC_SEQ_CST);
        next_word_ = index * kGroupWords + word;
        break;
      }
      ++looked_at;
      uint64_t slots = __atomic_exchange_n(&group.words[word], 0, __ATOMIC_SEQ_CST);
      for (; slots != 0; slots &= slots - 1) {
        const uint32_t slot = first_slot + static_cast<uint32_t>(std::countr_zero(slots));
        if (slot >= used_slots()) break;
        if (qpns_[slot] == kNobody) continue;
        ring(wire::Qpn{qpns_[slot]});
        ++looked_at;
      }
    }
    return looked_at;
  }

  SharedMemory memory_;
  rocemu_doorbell_page& page_;
  uint32_t slots_;
  uint32_t next_word_ = kNoWord;  // of all groups: where a scan ended that did not look at all
  std::vector<uint32_t> qpns_;    // by slot, up to the highest ever used
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free_;
};

}  // namespace rocemu::daemon
