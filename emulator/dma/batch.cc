#include "emulator/dma/batch.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace rocemu::dma {
namespace {

// As numbers: the pointers of remote ranges are not pointers of this process.
bool continues(const std::vector<iovec>& ranges, const void* base) noexcept {
  return !ranges.empty() &&
         reinterpret_cast<uintptr_t>(ranges.back().iov_base) + ranges.back().iov_len ==
             reinterpret_cast<uintptr_t>(base);
}

void append(std::vector<iovec>& ranges, bool merge, const iovec& range) noexcept {
  if (merge) {
    ranges.back().iov_len += range.iov_len;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

Batch::Batch(Direction direction, unsigned capacity) : direction_(direction), capacity_(capacity) {
  assert(capacity > 0);
  const unsigned ranges = std::min(capacity, AddressSpace::kMaxRanges);
  transfers_.reserve(capacity);
  groups_.reserve(capacity);
  local_.reserve(ranges);
  remote_.reserve(ranges);
}

void Batch::add(AddressSpace& space, uint64_t remote, std::byte* local, uint32_t length_bytes,
                uint32_t tag) noexcept {
  assert(!full());
  if (length_bytes == 0) return;
  const auto index = static_cast<uint32_t>(transfers_.size());
  transfers_.push_back({remote, local, length_bytes, tag, kNone, false});
  const bool wraps_round = remote > std::numeric_limits<uint64_t>::max() - length_bytes;
  if (!wraps_round) append_to_group(space, index);
}

void Batch::add(AddressSpace& space, uint64_t remote, const std::byte* local, uint32_t length_bytes,
                uint32_t tag) noexcept {
  assert(direction_ == Direction::to_program);
  add(space, remote, const_cast<std::byte*>(local), length_bytes, tag);
}

void Batch::append_to_group(AddressSpace& space, uint32_t index) noexcept {
  // From the back: the frames of a burst mostly belong to the same few programs.
  const auto found = std::find_if(groups_.rbegin(), groups_.rend(),
                                  [&](const Group& group) { return group.space == &space; });
  if (found == groups_.rend()) {
    groups_.push_back({&space, index, index});
    return;
  }
  transfers_[found->last].next = index;
  found->last = index;
}

void Batch::flush(std::vector<uint32_t>& failed) noexcept {
  for (const Group& group : groups_) move_group(group);
  for (const Transfer& transfer : transfers_) {
    if (!transfer.moved) failed.push_back(transfer.tag);
  }
  groups_.clear();
  transfers_.clear();
}

// After a call that came short, the first transfer that is incomplete is tried on its own, which
// tells whether it is the one at fault, and the batch goes on behind it.
void Batch::move_group(const Group& group) noexcept {
  AddressSpace& space = *group.space;
  uint32_t next = group.first;
  while (next != kNone) {
    const uint32_t end = gather(space, next);
    const Moved moved = space.move(direction_, local_, remote_);
    if (moved.out_of_reach) return;
    next = mark_moved(next, end, moved.bytes);
    if (next == end) continue;
    Transfer& suspect = transfers_[next];
    suspect.moved =
        space.move_range(direction_, suspect.remote, suspect.local, suspect.length_bytes);
    next = suspect.next;
  }
}

// Describes one call in local_ and remote_, from transfer `first` on; returns the transfer after
// the last that fitted in. A single transfer that is longer than a call may be is cut short.
uint32_t Batch::gather(const AddressSpace& space, uint32_t first) noexcept {
  local_.clear();
  remote_.clear();
  size_t bytes = 0;
  uint32_t index = first;
  for (; index != kNone; index = transfers_[index].next) {
    const Transfer& transfer = transfers_[index];
    const size_t room = AddressSpace::kMaxCallBytes - bytes;
    if (bytes != 0 && transfer.length_bytes > room) break;
    const size_t length = std::min<size_t>(transfer.length_bytes, room);

    const iovec there = remote_range(transfer.remote, length);
    const bool merge_remote = continues(remote_, there.iov_base);
    const bool merge_local = continues(local_, transfer.local);
    if (!merge_remote && remote_.size() == space.max_remote_ranges()) break;
    if (!merge_local && local_.size() == AddressSpace::kMaxRanges) break;

    append(remote_, merge_remote, there);
    append(local_, merge_local, {transfer.local, length});
    bytes += length;
  }
  return index;
}

uint32_t Batch::mark_moved(uint32_t first, uint32_t end, size_t bytes) noexcept {
  uint32_t index = first;
  while (index != end && transfers_[index].length_bytes <= bytes) {
    bytes -= transfers_[index].length_bytes;
    transfers_[index].moved = true;
    index = transfers_[index].next;
  }
  return index;
}

}  // namespace rocemu::dma
