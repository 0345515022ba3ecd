#include "emulator/dma/batch.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>

#include "emulator/dma/movers.h"

namespace rocemu::dma {
namespace {

// The smallest unit a program's memory is mapped in: a byte of it can be read if another can.
constexpr uint32_t kPageBytes = 4096;

// Takes the bytes that were read only because they lie between others. Nobody reads it; each thread
// has one so that they do not share its cache lines.
thread_local std::byte discarded[kPageBytes];

// What a program waits for at the end of a message: an integer, at most.
constexpr size_t kEndBytes = sizeof(uint64_t);

// The end is a number: the pointers of remote ranges are not pointers of this process.
uintptr_t end_of(const iovec& range) noexcept {
  return reinterpret_cast<uintptr_t>(range.iov_base) + range.iov_len;
}

bool continues(const std::vector<iovec>& ranges, const void* base) noexcept {
  return !ranges.empty() && end_of(ranges.back()) == reinterpret_cast<uintptr_t>(base);
}

void append(std::vector<iovec>& ranges, bool merge, const iovec& range) noexcept {
  if (merge) {
    ranges.back().iov_len += range.iov_len;
  } else {
    ranges.push_back(range);
  }
}

iovec behind(const iovec& range, size_t bytes) noexcept {
  return {static_cast<char*>(range.iov_base) + bytes, range.iov_len - bytes};
}

}  // namespace

// The ranges of a call in the making. Each thread has one, with room for the longest.
struct Batch::Call {
  std::vector<iovec> local;
  std::vector<iovec> remote;

  static Call& of_this_thread() noexcept {
    thread_local Call call;
    return call;
  }

  bool has_room_for_end_apart(const AddressSpace& space, const iovec& there) const noexcept;
  void append_with_end_apart(const AddressSpace& space, const iovec& there,
                             const iovec& here) noexcept;

 private:
  Call() {
    local.reserve(AddressSpace::kMaxRanges);
    remote.reserve(AddressSpace::kMaxRanges);
  }
};

Batch::Batch(Direction direction, unsigned capacity, bool stores_seen_in_order)
    : direction_(direction),
      capacity_(capacity),
      ends_apart_(direction == Direction::to_program && !stores_seen_in_order) {
  assert(capacity > 0);
  transfers_.reserve(capacity);
  groups_.reserve(capacity);
}

void Batch::add(AddressSpace& space, uint64_t remote, std::byte* local, uint32_t length_bytes,
                uint32_t tag) noexcept {
  assert(!full());
  if (length_bytes == 0) return;
  const auto index = static_cast<uint32_t>(transfers_.size());
  transfers_.push_back({remote, local, length_bytes, tag, kNone, 0, false});
  bytes_ += length_bytes;
  const bool wraps_round = remote > std::numeric_limits<uint64_t>::max() - length_bytes;
  if (!wraps_round) append_to_group(space, index);
}

void Batch::add(AddressSpace& space, uint64_t remote, const std::byte* local, uint32_t length_bytes,
                uint32_t tag) noexcept {
  assert(direction_ == Direction::to_program);
  add(space, remote, const_cast<std::byte*>(local), length_bytes, tag);
}

void Batch::append_to_group(AddressSpace& space, uint32_t index) noexcept {
  // The search begins at the back: the frames of a burst mostly belong to the same few programs.
  const auto found = std::find_if(groups_.rbegin(), groups_.rend(),
                                  [&](const Group& group) { return group.space == &space; });
  if (found == groups_.rend()) {
    groups_.push_back({&space, index, index, process_of(space)});
    return;
  }
  transfers_[found->last].next = index;
  found->last = index;
}

unsigned Batch::process_of(const AddressSpace& space) noexcept {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.space->pid() == space.pid();
  });
  return found == groups_.end() ? processes_++ : found->process;
}

void Batch::flush(std::vector<uint32_t>& failed) noexcept {
  move_all();
  for (const Transfer& transfer : transfers_) {
    if (!transfer.moved) failed.push_back(transfer.tag);
  }
  groups_.clear();
  transfers_.clear();
  bytes_ = 0;
  processes_ = 0;
}

void Batch::move_all() noexcept {
  Movers* const movers =
      processes_ < 2 || bytes_ < kWorthSharingBytes ? nullptr : SharedMoves::of_this_thread();
  if (movers == nullptr) {
    for (const Group& group : groups_) move_group(group);
    return;
  }
  movers->run(processes_, [this](unsigned process) {
    for (const Group& group : groups_)
      if (group.process == process) move_group(group);
  });
}

// After a call that came short, the first transfer that is incomplete is tried on its own, which
// tells whether it is the one at fault, and the batch goes on behind it.
void Batch::move_group(const Group& group) noexcept {
  AddressSpace& space = *group.space;
  Call& call = Call::of_this_thread();
  uint32_t next = group.first;
  while (next != kNone) {
    const uint32_t end = gather(call, space, next);
    const Moved moved = space.move(direction_, call.local, call.remote);
    if (moved.out_of_reach) return;
    next = mark_moved(next, end, moved.bytes);
    if (next == end) continue;
    Transfer& suspect = transfers_[next];
    suspect.moved =
        space.move_range(direction_, suspect.remote, suspect.local, suspect.length_bytes);
    next = suspect.next;
  }
}

// The number of bytes between the call's last remote range and `transfer` that may be read so that
// both are one range: all of them, if they are of one page with the end of the range. None for
// ranges that are written.
uint32_t Batch::skippable_bytes(const Call& call, const Transfer& transfer) const noexcept {
  if (direction_ != Direction::from_program || call.remote.empty()) return 0;
  const uintptr_t end = end_of(call.remote.back());
  if (transfer.remote <= end || transfer.remote / kPageBytes != (end - 1) / kPageBytes) return 0;
  return static_cast<uint32_t>(transfer.remote - end);
}

// Describes one call, from transfer `first` on; returns the transfer after the last that fitted in.
// A single transfer that is longer than a call may be is cut short.
uint32_t Batch::gather(Call& call, const AddressSpace& space, uint32_t first) noexcept {
  std::vector<iovec>& local = call.local;
  std::vector<iovec>& remote = call.remote;
  local.clear();
  remote.clear();
  size_t bytes = 0;
  uint32_t index = first;
  for (; index != kNone; index = transfers_[index].next) {
    Transfer& transfer = transfers_[index];
    const uint32_t skipped = skippable_bytes(call, transfer);
    const size_t room = AddressSpace::kMaxCallBytes - bytes;
    if (bytes != 0 && transfer.length_bytes + skipped > room) break;
    const size_t length = std::min<size_t>(transfer.length_bytes, room);

    const iovec there = remote_range(transfer.remote, length);
    if (ends_apart_) {
      if (!call.has_room_for_end_apart(space, there)) break;
      call.append_with_end_apart(space, there, {transfer.local, length});
      bytes += length;
      transfer.call_end = bytes - length + transfer.length_bytes;
      continue;
    }
    const bool merge_remote = skipped > 0 || continues(remote, there.iov_base);
    const bool merge_local = skipped == 0 && continues(local, transfer.local);
    if (!merge_remote && remote.size() == space.max_remote_ranges()) break;
    if (!merge_local && local.size() + 2 > AddressSpace::kMaxRanges) break;

    if (skipped > 0) {
      remote.back().iov_len += skipped;
      local.push_back({discarded, skipped});
    }
    append(remote, merge_remote, there);
    append(local, merge_local, {transfer.local, length});
    bytes += skipped + length;
    transfer.call_end = bytes - length + transfer.length_bytes;
  }
  return index;
}

// Space whose calls have one remote range takes what follows on, each local range by itself.
bool Batch::Call::has_room_for_end_apart(const AddressSpace& space,
                                         const iovec& there) const noexcept {
  if (local.size() + 2 > AddressSpace::kMaxRanges) return false;
  const unsigned most = space.max_remote_ranges();
  if (most == 1) return remote.empty() || continues(remote, there.iov_base);
  return remote.size() + 2 <= most;
}

void Batch::Call::append_with_end_apart(const AddressSpace& space, const iovec& there,
                                        const iovec& here) noexcept {
  const bool one_range = space.max_remote_ranges() == 1;
  const size_t before = there.iov_len > kEndBytes ? there.iov_len - kEndBytes : 0;
  if (before != 0) {
    append(remote, one_range && !remote.empty(), {there.iov_base, before});
    local.push_back({here.iov_base, before});
  }
  append(remote, one_range && !remote.empty(), behind(there, before));
  local.push_back(behind(here, before));
}

uint32_t Batch::mark_moved(uint32_t first, uint32_t end, size_t bytes) noexcept {
  uint32_t index = first;
  while (index != end && transfers_[index].call_end <= bytes) {
    transfers_[index].moved = true;
    index = transfers_[index].next;
  }
  return index;
}

}  // namespace rocemu::dma
