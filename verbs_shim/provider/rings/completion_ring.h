// A completion queue's ring, from the side that empties it. See verbs_shim/abi/rings.h. Not
// thread-safe: the CQ's lock is held, but for looks_empty(), announce_sleeper(), show_poller_core()
// and arm(), which threads that poll in vain call all the time: one that loses its core while it
// holds the lock keeps all others from the completions.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/rings/ring_size.h"
#include "verbs_shim/provider/rings/shared_index.h"
#include "verbs_shim/provider/rings/sleep_place.h"
#include "verbs_shim/provider/rings/stamps.h"

namespace rocemu::provider {

class CompletionRing {
 public:
  // `memory` is the CQ's, header first, with ring_slots(entries) slots.
  void attach(void* memory, uint32_t entries) {
    auto* header = static_cast<rocemu_cq_header*>(memory);
    mask_.store(ring_slots(entries) - 1, std::memory_order_relaxed);
    given_back_ = producer_seen_ = load_relaxed(&header->consumer);
    move_on_to(given_back_);
    header_.store(header, std::memory_order_release);
  }

  // True when there was nothing to take; false while the CQ is resized.
  bool looks_empty() const {
    if (moves_.load(std::memory_order_acquire)) [[unlikely]]
      return false;
    rocemu_cq_header* const header = header_.load(std::memory_order_acquire);
    const uint32_t next = next_.load(std::memory_order_acquire);
    __builtin_prefetch(slot(header, next));  // the NIC writes it and the index: both at once
    // Another ring may have taken over in between.
    return load_acquire(&header->producer) == next &&
           header_.load(std::memory_order_acquire) == header;
  }

  // The oldest completion that has not been taken, or null. It stays where it is until give_back().
  const rocemu_cqe* take() {
    while (true) {
      const uint32_t index = next();
      if (index == producer_seen_) {
        producer_seen_ = load_acquire(&header()->producer);
        if (index == producer_seen_) return nullptr;
      }
      const rocemu_cqe* entry = slot(header(), index);
      move_on_to(index + 1);
      if (entry->dead == 0) return entry;
    }
  }

  // Lets the NIC write over everything taken so far, and over the dead ones passed on the way.
  void give_back() {
    if (given_back_ == next()) return;
    if (load_relaxed(&header()->stamps_polls) != 0) [[unlikely]]
      stamp_polls();
    given_back_ = next();
    store_release(&header()->consumer, given_back_);
  }

  // Shows those that have not been taken to `visit`, which may change them.
  template <typename Visit>
  void visit_untaken(Visit visit) {
    producer_seen_ = load_acquire(&header()->producer);
    for (uint32_t i = next(); i != producer_seen_; ++i) visit(*slot(header(), i));
  }

  // Makes the completions of a QP that are not taken yet disappear. The NIC writes no more of them.
  // Their room is given back by the next give_back(), which is not for the middle of a batch.
  void kill(uint32_t qp_num) {
    visit_untaken([qp_num](rocemu_cqe& entry) {
      if (entry.qp_num != qp_num) return;
      entry.dead = 1;
      entry.inline_bytes = 0;  // the memory is the program's again
    });
    while (next() != producer_seen_ && slot(header(), next())->dead != 0) move_on_to(next() + 1);
  }

  // From before the NIC is asked for another ring until this one has moved there, or will not: what
  // the NIC shows meanwhile stands in a ring that nobody here knows, and may have come before an
  // event was asked for. Who polls waits for the lock, then.
  void set_moves(bool moves) { moves_.store(moves, std::memory_order_seq_cst); }

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

  // Asks the NIC to wake who sleeps there when it shows more. To be called after a poll has found
  // nothing.
  SleepPlace announce_sleeper() {
    rocemu_cq_header* const header = header_.load(std::memory_order_acquire);
    __atomic_store_n(&header->sleepers, 1u, __ATOMIC_SEQ_CST);
    return {&header->producer, next()};
  }

  // Tells the NIC where it was found empty: the core's number and 1.
  void show_poller_core(uint32_t core) {
    uint32_t* const word = &header()->poller_core;
    if (load_relaxed(word) != core) __atomic_store_n(word, core, __ATOMIC_RELAXED);
  }

 private:
  void stamp_polls() {
    const uint64_t now = monotonic_ns();
    for (uint32_t i = given_back_; i != next(); ++i) slot(header(), i)->timestamp_ns = now;
  }

  rocemu_cq_header* header() const { return header_.load(std::memory_order_relaxed); }
  uint32_t next() const { return next_.load(std::memory_order_relaxed); }
  void move_on_to(uint32_t index) { next_.store(index, std::memory_order_relaxed); }
  rocemu_cqe* slot(rocemu_cq_header* header, uint32_t index) const {
    auto* const slots =
        reinterpret_cast<rocemu_cqe*>(reinterpret_cast<uint8_t*>(header) + ROCEMU_CQ_RING_OFFSET);
    return &slots[index & mask_.load(std::memory_order_relaxed)];
  }

  // These four are read without the lock as well.
  std::atomic<rocemu_cq_header*> header_{nullptr};
  std::atomic<uint32_t> mask_{0};
  std::atomic<uint32_t> next_{0};  // to be taken
  std::atomic<bool> moves_{false};
  uint32_t given_back_ = 0;  // the consumer index as the NIC sees it
  uint32_t producer_seen_ = 0;
};

}  // namespace rocemu::provider
