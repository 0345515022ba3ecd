// The memory that peers have ever written. Ranges that touch are one; a program that has them in
// too many places, or too many programs, count as written everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace rocemu::inspection {

class WrittenRanges {
 public:
  static constexpr size_t kMaxRanges = 1024;  // for each program
  static constexpr size_t kMaxSpaces = 1024;

  // `length_bytes` > 0.
  void add(const void* space, uint64_t address, uint64_t length_bytes) {
    const uint64_t last = address + std::min(length_bytes - 1, ~address);
    if (space == last_space_ && address >= last_begin_ && last <= last_end_) return;
    if (!spaces_.contains(space) && spaces_.size() >= kMaxSpaces) {
      too_many_ = true;
      return;
    }
    Ranges& ranges = spaces_[space];
    insert(ranges, address, last);
    if (ranges.size() > kMaxRanges) ranges = {{0, ~uint64_t{0}}};
    const auto merged = std::prev(ranges.upper_bound(address));
    last_space_ = space;
    last_begin_ = merged->first;
    last_end_ = merged->second;
  }

  bool may_have(const void* space, uint64_t address, uint64_t length_bytes) const {
    const auto found = spaces_.find(space);
    if (found == spaces_.end()) return too_many_;
    if (length_bytes == 0) return false;
    const Ranges& ranges = found->second;
    const uint64_t last = address + std::min(length_bytes - 1, ~address);
    auto next = ranges.upper_bound(last);
    return next != ranges.begin() && std::prev(next)->second >= address;
  }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // first and last byte; they do not touch

  static void insert(Ranges& ranges, uint64_t begin, uint64_t last) {
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin()) {
      const auto before = std::prev(next);
      if (before->second >= begin || begin - before->second == 1) {
        begin = before->first;
        last = std::max(last, before->second);
        next = ranges.erase(before);
      }
    }
    while (next != ranges.end() && (next->first <= last || next->first - last == 1)) {
      last = std::max(last, next->second);
      next = ranges.erase(next);
    }
    ranges[begin] = last;
  }

  std::unordered_map<const void*, Ranges> spaces_;
  bool too_many_ = false;
  // The range that was added to last, which is where programs write again.
  const void* last_space_ = nullptr;
  uint64_t last_begin_ = 0;
  uint64_t last_end_ = 0;
};

}  // namespace rocemu::inspection
