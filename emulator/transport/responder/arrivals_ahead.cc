#include "emulator/transport/responder/arrivals_ahead.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace rocemu::transport {

void ArrivalsAhead::release() {
  std::vector<Slot>().swap(slots_);
  std::vector<Arrival>().swap(arrivals_);
  count_ = 0;
}

const ArrivalsAhead::Arrival* ArrivalsAhead::find(wire::Psn psn) const {
  if (count_ == 0) return nullptr;
  const size_t index = index_of(psn);
  return slots_[index].used && slots_[index].psn == psn ? &arrivals_[index] : nullptr;
}

void ArrivalsAhead::grow(uint32_t distance) {
  constexpr size_t kFirst = 64;
  const size_t size = std::bit_ceil(std::max<size_t>(kFirst, distance + 1));
  std::vector<Slot> slots(size);
  std::vector<Arrival> arrivals(size);
  slots.swap(slots_);
  arrivals.swap(arrivals_);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].used) continue;
    const size_t index = index_of(slots[i].psn);
    slots_[index] = slots[i];
    arrivals_[index] = arrivals[i];
  }
}

ArrivalsAhead::Arrival& ArrivalsAhead::add(wire::Psn expected, wire::Psn psn,
                                           const MemoryRange& range, uint32_t bytes) {
  const auto distance = static_cast<uint32_t>(psn.distance_from(expected));
  assert(distance < kMax);
  if (distance >= slots_.size()) grow(distance);
  const size_t index = index_of(psn);
  assert(!slots_[index].used);
  slots_[index] = {true, psn, bytes, range.address, range.space};
  ++count_;
  return arrivals_[index] = Arrival{};
}

void ArrivalsAhead::free(Slot& slot) {
  slot.used = false;
  --count_;
}

void ArrivalsAhead::remove(wire::Psn psn) {
  if (has(psn)) free(slots_[index_of(psn)]);
}

void ArrivalsAhead::forget_before(wire::Psn expected) {
  for (Slot& slot : slots_)
    if (slot.used && slot.psn.before(expected)) free(slot);
}

size_t ArrivalsAhead::pieces_of(wire::Psn psn, const MemoryRange& range, uint32_t bytes,
                                std::span<Piece, kMaxPieces> pieces) {
  pieces[0] = {0, bytes};
  size_t count = 1;
  if (count_ == 0) return count;
  for (Slot& later : slots_) {
    if (!later.used || later.space != range.space || !later.psn.after(psn) ||
        later.address >= range.address + bytes || range.address >= later.address + later.bytes)
      continue;
    const uint64_t from = std::max(later.address, range.address) - range.address;
    const uint64_t to = std::min(later.address + later.bytes - range.address, uint64_t{bytes});
    const size_t before = count;
    for (size_t i = 0; i < before; ++i) {
      Piece& piece = pieces[i];
      const uint64_t end = uint64_t{piece.offset_bytes} + piece.length_bytes;
      if (from >= end || to <= piece.offset_bytes) continue;
      if (to < end && from > piece.offset_bytes) {
        if (count == kMaxPieces) {
          free(later);
          break;
        }
        pieces[count++] = {static_cast<uint32_t>(to), static_cast<uint32_t>(end - to)};
      }
      if (from <= piece.offset_bytes) {
        const auto left = static_cast<uint32_t>(to < end ? end - to : 0);
        piece = {static_cast<uint32_t>(end - left), left};
      } else {
        piece.length_bytes = static_cast<uint32_t>(from - piece.offset_bytes);
      }
    }
  }
  return count;
}

size_t ArrivalsAhead::write_bitmap(wire::Psn expected,
                                   std::span<std::byte, kBitmapBytes> to) const {
  std::ranges::fill(to, std::byte{0});
  size_t bytes = 0;
  for (const Slot& slot : slots_) {
    if (!slot.used) continue;
    const auto bit = static_cast<size_t>(slot.psn.distance_from(expected) - 1);
    if (bit >= kMax) continue;
    to[bit / 8] |= std::byte{1} << bit % 8;
    bytes = std::max(bytes, bit / 8 + 1);
  }
  return bytes;
}

}  // namespace rocemu::transport
