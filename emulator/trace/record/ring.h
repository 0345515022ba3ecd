// The records of one device between the thread that has its turns and the one that writes the
// file: a ring without locks, bounded. One thread puts records in, one takes them out.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "emulator/trace/format/record.h"

namespace rocemu::trace {

class Ring {
 public:
  enum class WhenFull : uint8_t {
    lose_new,   // what comes is counted and left out until the reader has made room
    forget_old  // the oldest goes; there is no reader beside the writer
  };

  // `records` is rounded up to a power of two.
  Ring(size_t records, WhenFull when_full)
      : mask_(std::bit_ceil(records) - 1),
        when_full_(when_full),
        records_(std::make_unique_for_overwrite<Record[]>(mask_ + 1)) {}

  // The place for the next record, which commit() then makes the reader's; null when it is full.
  Record* claim() {
    if (put_ - taken_seen_ > mask_) [[unlikely]] {
      if (!make_room()) return nullptr;
    }
    return &records_[put_ & mask_];
  }
  // True each time that the ring has become half full: whoever takes records should come.
  bool commit() {
    shown_.store(++put_, std::memory_order_release);
    return (put_ & (mask_ >> 1)) == 0;
  }

  // The oldest records, as far as they lie in one piece. They stay until release().
  std::span<const Record> peek() const {
    const uint64_t taken = taken_.load(std::memory_order_relaxed);
    const uint64_t count = shown_.load(std::memory_order_acquire) - taken;
    const uint64_t to_end = mask_ + 1 - (taken & mask_);
    return {&records_[taken & mask_], static_cast<size_t>(count < to_end ? count : to_end)};
  }
  void release(size_t count) {
    taken_.store(taken_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

  // Returns how many records found no room since this was asked last. Any thread may ask.
  uint64_t take_lost() { return lost_.exchange(0, std::memory_order_relaxed); }
  bool is_empty() const { return peek().empty(); }
  bool forgets() const { return when_full_ == WhenFull::forget_old; }
  size_t capacity() const { return mask_ + 1; }

 private:
  bool make_room() {
    taken_seen_ = taken_.load(std::memory_order_acquire);
    if (put_ - taken_seen_ <= mask_) return true;
    if (!forgets()) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    taken_.store(++taken_seen_, std::memory_order_relaxed);
    return true;
  }

  const uint64_t mask_;
  const WhenFull when_full_;
  const std::unique_ptr<Record[]> records_;
  alignas(64) uint64_t put_ = 0;
  uint64_t taken_seen_ = 0;
  std::atomic<uint64_t> shown_{0};
  alignas(64) std::atomic<uint64_t> taken_{0};
  alignas(64) std::atomic<uint64_t> lost_{0};
};

}  // namespace rocemu::trace
