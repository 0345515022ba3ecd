// A bounded first-in-first-out queue of frames for one thread. Owns what is in it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/run_mark.h"

namespace rocemu::dpdk_io {

class FrameQueue {
 public:
  explicit FrameQueue(uint32_t capacity)
      : capacity_(capacity), mask_(std::bit_ceil(capacity) - 1), slots_(mask_ + size_t{1}) {}
  ~FrameQueue() {
    for (; head_ != tail_; ++head_) FramePool::free(slots_[head_ & mask_]);
  }
  FrameQueue(const FrameQueue&) = delete;
  FrameQueue& operator=(const FrameQueue&) = delete;

  bool empty() const noexcept { return head_ == tail_; }

  // False when the queue is full: the frame stays the caller's.
  bool push(rte_mbuf* frame) noexcept {
    if (tail_ - head_ == capacity_) return false;
    slots_[tail_++ & mask_] = frame;
    return true;
  }

  // The oldest frames, as many as there are until there is no room for as many single packets; a
  // run (run_mark.h) may go beyond. Returns how many frames.
  unsigned pop(std::span<rte_mbuf*> frames) noexcept {
    unsigned count = 0;
    for (size_t packets = 0; packets < frames.size() && head_ != tail_; ++count) {
      frames[count] = slots_[head_++ & mask_];
      packets += counted_packets(frames[count]);
    }
    return count;
  }

  // Takes out the frames for which keep() is false; they are its own then.
  template <class Keep>
  void keep_if(Keep keep) noexcept {
    for (uint32_t left = tail_ - head_; left != 0; --left) {
      rte_mbuf* const frame = slots_[head_++ & mask_];
      if (keep(frame)) slots_[tail_++ & mask_] = frame;
    }
  }

 private:
  uint32_t capacity_;
  uint32_t mask_;
  uint32_t head_ = 0;  // free running, as is the tail
  uint32_t tail_ = 0;
  std::vector<rte_mbuf*> slots_;
};

}  // namespace rocemu::dpdk_io
