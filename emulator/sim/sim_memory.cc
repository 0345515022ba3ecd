#include "emulator/sim/sim_memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rocemu::sim {

using transport::MemoryRange;

namespace {

// A range's `space` says whether its region is broken.
char intact_space;
char broken_space;

bool broken(const MemoryRange& range) { return range.space == &broken_space; }

}  // namespace

uint64_t SimMemory::allocate(size_t length_bytes) {
  const size_t offset = (bytes_.size() + 7) & ~size_t{7};
  bytes_.resize(offset + length_bytes);
  guards_.push_back(bytes_.size());
  bytes_.insert(bytes_.end(), kGuardBytes, kGuard);
  return base_ + offset;
}

bool SimMemory::guards_intact() const {
  return std::all_of(guards_.begin(), guards_.end(), [&](size_t guard) {
    return std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(guard),
                       bytes_.begin() + static_cast<ptrdiff_t>(guard + kGuardBytes),
                       [](std::byte b) { return b == kGuard; });
  });
}

uint32_t SimMemory::register_region(transport::PdHandle pd, uint64_t address, uint64_t length_bytes,
                                    uint32_t access) {
  assert(address >= base_ && address - base_ + length_bytes <= bytes_.size());
  const uint32_t key = next_key_++;
  regions_[key] = {pd, address, length_bytes, access, false};
  return key;
}

std::span<std::byte> SimMemory::at(uint64_t address, size_t length_bytes) {
  assert(address >= base_ && address - base_ + length_bytes <= bytes_.size());
  return std::span(bytes_).subspan(address - base_, length_bytes);
}

bool SimMemory::check(transport::PdHandle pd, uint32_t key, uint64_t address, uint32_t length_bytes,
                      uint32_t access, MemoryRange& range) {
  assert(length_bytes > 0);
  const auto found = regions_.find(key);
  if (found == regions_.end()) return false;
  const Region& region = found->second;
  if (region.pd != pd || (region.access & access) != access) return false;
  if (address < region.address || address - region.address > region.length_bytes ||
      length_bytes > region.length_bytes - (address - region.address))
    return false;
  range = {region.broken ? &broken_space : &intact_space, address};
  if (lends_) range.mapped = at(address, length_bytes).data();
  return true;
}

bool SimMemory::moves(const MemoryRange& range) { return !broken(range); }

bool SimMemory::check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address,
                            uint32_t length_bytes, uint32_t access, MemoryRange& range) noexcept {
  return check(pd, lkey.value, address, length_bytes, access, range);
}

bool SimMemory::check_remote(transport::PdHandle pd, wire::Qpn, wire::RKey rkey, uint64_t address,
                             uint32_t length_bytes, uint32_t access, MemoryRange& range) noexcept {
  return check(pd, rkey.value, address, length_bytes, access, range);
}

bool SimMemory::grants_remote(transport::PdHandle pd, wire::Qpn, const wire::Reth& asked,
                              uint32_t access) noexcept {
  const auto found = regions_.find(asked.rkey.value);
  return found != regions_.end() && found->second.pd == pd &&
         (found->second.access & access) == access;
}

bool SimMemory::bind_window(transport::PdHandle pd, wire::Qpn,
                            const transport::WindowBinding& binding) noexcept {
  if (!regions_.contains(binding.region.value)) return false;
  regions_[binding.window.value] = {pd, binding.address, binding.length_bytes, binding.access,
                                    false};
  return true;
}

bool SimMemory::invalidate(transport::PdHandle, wire::Qpn, wire::RKey rkey) noexcept {
  return regions_.erase(rkey.value) == 1;
}

void SimMemory::fetch(const MemoryRange& range, std::byte* into, uint32_t length_bytes,
                      uint32_t tag) noexcept {
  std::memset(into, 0xdb, length_bytes);
  fetches_.push_back({range, into, length_bytes, tag});
}

void SimMemory::scatter(const MemoryRange& range, const std::byte* from, uint32_t length_bytes,
                        uint32_t tag) noexcept {
  scatters_.push_back({range, from, length_bytes, tag});
}

bool SimMemory::can_lend(const MemoryRange& range, uint32_t) noexcept {
  return range.mapped != nullptr && !broken(range);
}

bool SimMemory::land(const MemoryRange& range, std::byte* to, uint32_t length_bytes) noexcept {
  if (range.mapped == nullptr || broken(range)) return false;
  ++landed_;
  std::memmove(to, range.mapped, length_bytes);
  return true;
}

bool SimMemory::begin_lent(std::span<const std::byte>, std::byte*) noexcept { return !loses_lent_; }

bool SimMemory::take_lent(std::span<const std::byte> lent, std::byte* into) noexcept {
  if (loses_lent_) return false;
  ++taken_lent_;
  std::memcpy(into, lent.data(), lent.size());
  return true;
}

void SimMemory::flush_fetches(std::vector<uint32_t>& failed) noexcept {
  for (const Fetch& fetch : fetches_) {
    if (broken(fetch.range)) {
      failed.push_back(fetch.tag);
    } else {
      std::memcpy(fetch.into, at(fetch.range.address, fetch.length_bytes).data(),
                  fetch.length_bytes);
    }
  }
  fetches_.clear();
}

void SimMemory::flush_scatters(std::vector<uint32_t>& failed) noexcept {
  for (const Scatter& scatter : scatters_) {
    if (broken(scatter.range)) {
      failed.push_back(scatter.tag);
    } else {
      std::byte* const to = at(scatter.range.address, scatter.length_bytes).data();
      if (to != scatter.from) std::memcpy(to, scatter.from, scatter.length_bytes);
    }
  }
  scatters_.clear();
  ++scatter_batches_;
}

bool SimMemory::compare_swap(const MemoryRange& range, uint64_t compare, uint64_t swap,
                             uint64_t& original) noexcept {
  assert(scatters_.empty());
  if (broken(range)) return false;
  std::byte* cell = at(range.address, sizeof original).data();
  std::memcpy(&original, cell, sizeof original);
  if (original == compare) std::memcpy(cell, &swap, sizeof swap);
  return true;
}

bool SimMemory::fetch_add(const MemoryRange& range, uint64_t add, uint64_t& original) noexcept {
  assert(scatters_.empty());
  if (broken(range)) return false;
  std::byte* cell = at(range.address, sizeof original).data();
  std::memcpy(&original, cell, sizeof original);
  const uint64_t sum = original + add;
  std::memcpy(cell, &sum, sizeof sum);
  return true;
}

}  // namespace rocemu::sim
