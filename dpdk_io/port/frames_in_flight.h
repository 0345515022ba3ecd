// Frames on their way over links with impairments, the next to arrive first. Bounded; owns what is
// in it. Frames that arrive at the same time come out in the order in which they went in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"
#include "impairment/assignment.h"

namespace rocemu::dpdk_io {

class SwitchPort;

class FramesInFlight {
 public:
  struct Entry {
    uint64_t at_ns;
    SwitchPort* port;  // whose link it is on
    impairment::Direction direction;
    rte_mbuf* frame;
  };

  FramesInFlight() = default;
  ~FramesInFlight() {
    for (const Slot& slot : heap_) FramePool::free(slot.entry.frame);
  }
  FramesInFlight(const FramesInFlight&) = delete;
  FramesInFlight& operator=(const FramesInFlight&) = delete;

  // To be called before push(), which takes no memory. Never makes it smaller.
  void reserve(size_t frames) { heap_.reserve(frames); }

  // kNever when nothing is on its way.
  uint64_t next_arrival_ns() const noexcept {
    return heap_.empty() ? kNever : heap_.front().entry.at_ns;
  }

  // False when it is full: the frame stays the caller's.
  bool push(const Entry& entry) noexcept {
    if (heap_.size() == heap_.capacity()) return false;
    heap_.push_back({entry, next_order_++});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return true;
  }

  // The next to arrive, of which there must be one; the frame is now the caller's.
  Entry pop() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back().entry;
    heap_.pop_back();
    return entry;
  }

 private:
  struct Slot {
    Entry entry;
    uint64_t order;
  };
  static bool later(const Slot& a, const Slot& b) noexcept {
    return a.entry.at_ns != b.entry.at_ns ? a.entry.at_ns > b.entry.at_ns : a.order > b.order;
  }

  std::vector<Slot> heap_;
  uint64_t next_order_ = 0;
};

}  // namespace rocemu::dpdk_io
