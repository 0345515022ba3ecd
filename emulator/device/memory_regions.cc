#include "emulator/device/memory_regions.h"

namespace rocemu::device {

std::optional<uint32_t> MemoryRegions::add(MemoryRegion region) {
  if (size_ >= max_regions_) return std::nullopt;
  uint32_t index;
  uint8_t tag;
  // A freed index rests for as long as there are fresh ones or longer-rested ones.
  if (regions_.size() < max_regions_ && free_.size() < 64) {
    index = static_cast<uint32_t>(regions_.size());
    // Index 0 with tag 0 would be key 0, which programs take for none.
    tag = static_cast<uint8_t>(index * 37 + 1);
    regions_.emplace_back();
  } else {
    index = free_.front();
    free_.pop_front();
    tag = static_cast<uint8_t>(regions_[index].key + 1);
    if (index == 0 && tag == 0) tag = 1;
  }
  region.key = index << 8 | tag;
  regions_[index] = region;
  ++size_;
  return region.key;
}

void MemoryRegions::remove(uint32_t key) {
  const uint32_t index = key >> 8;
  regions_[index].space = nullptr;  // the key stays: its tag is the last one used
  free_.push_back(index);
  --size_;
}

}  // namespace rocemu::device
