// Items that are due later: the earliest comes first, and of those due at the same time the one
// that went in first. Bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/time.h"

namespace rocemu::network {

template <class Item>
class DueQueue {
 public:
  struct Entry {
    TimeNs at;
    uint64_t order;
    Item item;
  };

  explicit DueQueue(size_t capacity = std::numeric_limits<size_t>::max()) : capacity_(capacity) {}

  // Takes the memory that push() would take otherwise. Precondition: the capacity is bounded.
  void reserve() { heap_.reserve(capacity_); }

  bool empty() const noexcept { return heap_.empty(); }
  size_t size() const noexcept { return heap_.size(); }
  // kNever when there is nothing.
  TimeNs next() const noexcept { return heap_.empty() ? kNever : heap_.front().at; }

  // False when it is full: the item is still the caller's.
  bool push(TimeNs at, Item&& item) {
    if (heap_.size() >= capacity_) return false;
    heap_.push_back({at, next_order_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return true;
  }

  // The earliest, of which there must be one.
  Entry pop() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    return entry;
  }

 private:
  static bool later(const Entry& a, const Entry& b) noexcept {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  size_t capacity_;
  std::vector<Entry> heap_;
  uint64_t next_order_ = 0;
};

}  // namespace rocemu::network
