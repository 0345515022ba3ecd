// The translation and protection table: what each key grants (IBTA vol 1, 10.6).
//
// A key is an index into the table and, in its low 8 bits, a tag that changes with every
// registration, so that a stale key meets nothing. lkey and rkey of a region are the same number.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "emulator/dma/address_space.h"
#include "emulator/transport/environment.h"

namespace rocemu::device {

struct MemoryRegion {
  uint32_t key = 0;
  transport::PdHandle pd = 0;
  uint32_t access = 0;  // transport::Access bits
  uint64_t iova = 0;    // what keys are used with
  uint64_t length_bytes = 0;
  uint64_t address = 0;                // in the program
  dma::AddressSpace* space = nullptr;  // null: no region here
};

class MemoryRegions {
 public:
  explicit MemoryRegions(uint32_t max_regions) : max_regions_(max_regions) {}

  // The key; empty when the table is full. `region.key` is set here.
  std::optional<uint32_t> add(MemoryRegion region);
  void remove(uint32_t key);
  uint32_t size() const { return size_; }

  // The range that `key` grants, when it grants `access` to all of it within `pd`.
  bool check(transport::PdHandle pd, uint32_t key, uint64_t address, uint32_t length_bytes,
             uint32_t access, transport::MemoryRange& range) const noexcept {
    const uint32_t index = key >> 8;
    if (index >= regions_.size()) return false;
    const MemoryRegion& region = regions_[index];
    if (region.space == nullptr || region.key != key || region.pd != pd) return false;
    if ((access & ~region.access) != 0) return false;
    const uint64_t offset = address - region.iova;  // wraps below the region: then too large
    if (offset > region.length_bytes || length_bytes > region.length_bytes - offset) return false;
    range = {region.space, region.address + offset};
    return true;
  }

 private:
  uint32_t max_regions_;
  uint32_t size_ = 0;
  std::vector<MemoryRegion> regions_;
  std::deque<uint32_t> free_;
};

}  // namespace rocemu::device
