// A completion queue's ring, from the side that empties it. Not thread-safe: the CQ's lock is held,
// but for arm(). See verbs_shim/abi/rings.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/rings/shared_index.h"

namespace rocemu::provider {

class CompletionRing {
 public:
  // `memory` is the CQ's, header first; `entries` a power of two.
  void attach(void* memory, uint32_t entries) {
    auto* header = static_cast<rocemu_cq_header*>(memory);
    slots_ = reinterpret_cast<rocemu_cqe*>(static_cast<uint8_t*>(memory) + ROCEMU_CQ_RING_OFFSET);
    mask_ = entries - 1;
    next_ = given_back_ = producer_seen_ = load_relaxed(&header->consumer);
    header_.store(header, std::memory_order_release);
  }

  // The oldest completion that has not been taken, or null. It stays where it is until give_back().
  const rocemu_cqe* take() {
    while (true) {
      if (next_ == producer_seen_) {
        __builtin_prefetch(
            &slots_[next_ & mask_]);  // the NIC writes it and the index: both at once
        producer_seen_ = load_acquire(&header()->producer);
        if (next_ == producer_seen_) return nullptr;
      }
      const rocemu_cqe* entry = &slots_[next_++ & mask_];
      if (entry->dead == 0) return entry;
    }
  }

  // Lets the NIC write over everything taken so far, and over the dead ones passed on the way.
  void give_back() {
    if (given_back_ == next_) return;
    given_back_ = next_;
    store_release(&header()->consumer, next_);
  }

  // Shows those that have not been taken to `visit`, which may change them.
  template <typename Visit>
  void visit_untaken(Visit visit) {
    producer_seen_ = load_acquire(&header()->producer);
    for (uint32_t i = next_; i != producer_seen_; ++i) visit(slots_[i & mask_]);
  }

  // Makes the completions of a QP that are not taken yet disappear. The NIC writes no more of them.
  void kill(uint32_t qp_num) {
    visit_untaken([qp_num](rocemu_cqe& entry) {
      if (entry.qp_num == qp_num) entry.dead = 1;
    });
    while (next_ != producer_seen_ && slots_[next_ & mask_].dead != 0) ++next_;
    give_back();
  }

  // Does as attach(), for a ring that takes over from this one. An event that was asked for
  // meanwhile is asked for again.
  void move_to(void* memory, uint32_t entries) {
    rocemu_cq_header* old = header_.load(std::memory_order_relaxed);
    attach(memory, entries);
    full_fence();
    const uint32_t wish = __atomic_exchange_n(&old->arm, 0u, __ATOMIC_SEQ_CST);
    if (wish != ROCEMU_CQ_UNARMED) arm(wish);
  }

  // Asks for an event. A stronger request that is still there stays.
  void arm(uint32_t wish) {
    rocemu_cq_header* header = header_.load(std::memory_order_acquire);
    while (true) {
      uint32_t seen = load_relaxed(&header->arm);
      while (seen < wish && !__atomic_compare_exchange_n(&header->arm, &seen, wish, true,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      }
      full_fence();
      // Another ring may have taken over, and have looked here before.
      rocemu_cq_header* now = header_.load(std::memory_order_acquire);
      if (now == header) return;
      header = now;
    }
  }

  // Tells the NIC where it was found empty: the core's number and 1.
  void show_poller_core(uint32_t core) {
    uint32_t* const word = &header()->poller_core;
    if (load_relaxed(word) != core) __atomic_store_n(word, core, __ATOMIC_RELAXED);
  }

 private:
  rocemu_cq_header* header() const { return header_.load(std::memory_order_relaxed); }

  std::atomic<rocemu_cq_header*> header_{nullptr};  // arm() reads it without the lock
  rocemu_cqe* slots_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t next_ = 0;        // to be taken
  uint32_t given_back_ = 0;  // the consumer index as the NIC sees it
  uint32_t producer_seen_ = 0;
};

}  // namespace rocemu::provider
