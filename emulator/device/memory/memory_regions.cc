#include "emulator/device/memory/memory_regions.h"

#include <algorithm>

namespace rocemu::device {

// Answers the key that the entry's next owner has.
uint32_t MemoryRegions::take_in_order() {
  // A freed index rests for as long as there are fresh ones or longer-rested ones.
  if (regions_.size() < max_entries_ && free_.size() < 64) {
    const auto index = static_cast<uint32_t>(regions_.size());
    regions_.emplace_back();
    return index << 8 | static_cast<uint8_t>(index * 37 + 1);
  }
  const uint32_t index = free_.front();
  free_.pop_front();
  return index << 8 | static_cast<uint8_t>(regions_[index].key + 1);
}

// At most half of the entries there are, as long as there may be more, are taken.
uint32_t MemoryRegions::take_at_random() {
  constexpr size_t kMinEntries = 65536;
  if (2 * size_t{size_} >= regions_.size())
    regions_.resize(std::min<size_t>(max_entries_, std::max(kMinEntries, 2 * regions_.size())));
  for (;;) {
    const auto index = static_cast<uint32_t>(random_->below(regions_.size()));
    const MemoryRegion& entry = regions_[index];
    if (entry.space != nullptr || entry.window != WindowType::none) continue;
    // The tag is another one than the last.
    return index << 8 | static_cast<uint8_t>(entry.key + random_->between(1, 255));
  }
}

std::optional<uint32_t> MemoryRegions::add(MemoryRegion region) {
  if (size_ >= max_entries_) return std::nullopt;
  region.key = random_ ? take_at_random() : take_in_order();
  if (region.key == 0) region.key = 1;  // programs take 0 for none
  const uint32_t index = region.key >> 8;
  region.generation = regions_[index].generation;
  regions_[index] = region;
  ++size_;
  return region.key;
}

std::optional<uint32_t> MemoryRegions::add_window(transport::PdHandle pd, WindowType type) {
  MemoryRegion window;
  window.pd = pd;
  window.window = type;
  return add(window);
}

void MemoryRegions::remove(uint32_t key) {
  const uint32_t index = key >> 8;
  MemoryRegion& region = regions_[index];
  if (region.window != WindowType::none) unbind(region);
  if (tell_gone_) tell_gone_(region.key);
  const uint32_t last_key = region.key;  // its tag is the last one used
  const uint32_t generation = region.generation;
  region = {};
  region.key = last_key;
  region.generation = generation + 1;
  if (!random_) free_.push_back(index);
  --size_;
}

MemoryRegion* MemoryRegions::entry(uint32_t key) {
  const uint32_t index = key >> 8;
  return index < regions_.size() ? &regions_[index] : nullptr;
}

MemoryRegion* MemoryRegions::find_region(uint32_t key) {
  MemoryRegion* found = entry(key);
  const bool is_region = found != nullptr && found->key == key && found->space != nullptr &&
                         found->window == WindowType::none;
  return is_region ? found : nullptr;
}

void MemoryRegions::unbind(MemoryRegion& window) {
  if (is_bound(window)) --regions_[window.region_key >> 8].windows;
  window.space = nullptr;
  window.qpn = wire::Qpn{};
}

bool MemoryRegions::may_bind(const MemoryRegion& window, transport::PdHandle pd,
                             const transport::WindowBinding& binding) {
  constexpr uint32_t kWindowAccess = transport::kRemoteWrite | transport::kRemoteRead |
                                     transport::kRemoteAtomic | transport::kLocalWrite |
                                     kFlushGlobal;
  const bool type_2 = window.window == WindowType::type_2;
  if (window.pd != pd) return false;
  if (type_2 && is_bound(window)) return false;
  if (binding.length_bytes == 0) return !type_2;
  if ((binding.access & ~(kWindowAccess | (type_2 ? kZeroBased : 0))) != 0) return false;
  const MemoryRegion* region = find_region(binding.region.value);
  if (region == nullptr || region->pd != pd) return false;
  if ((region->access & kWindowBind) == 0 || (region->access & kZeroBased) != 0) return false;
  const bool changes = (binding.access & (transport::kRemoteWrite | transport::kRemoteAtomic)) != 0;
  if (changes && (region->access & transport::kLocalWrite) == 0) return false;
  if ((binding.access & ~region->access & kFlushGlobal) != 0) return false;
  const uint64_t offset = binding.address - region->iova;
  return offset <= region->length_bytes && binding.length_bytes <= region->length_bytes - offset;
}

bool MemoryRegions::bind(transport::PdHandle pd, wire::Qpn qpn,
                         const transport::WindowBinding& binding) noexcept {
  MemoryRegion* window = entry(binding.window.value);
  if (window == nullptr || window->window == WindowType::none || !may_bind(*window, pd, binding))
    return false;
  unbind(*window);
  window->key = binding.window.value;
  if (binding.length_bytes == 0) return true;
  MemoryRegion& region = *find_region(binding.region.value);
  ++region.windows;
  window->region_key = region.key;
  window->region_generation = region.generation;
  window->access = (binding.access & ~transport::kLocalWrite) | kUseAsRkey;
  window->iova = (binding.access & kZeroBased) != 0 ? 0 : binding.address;
  window->length_bytes = binding.length_bytes;
  window->address = region.address + (binding.address - region.iova);
  window->mapped =
      region.mapped == nullptr ? nullptr : region.mapped + (window->address - region.address);
  window->space = region.space;
  if (window->window == WindowType::type_2) window->qpn = qpn;
  return true;
}

bool MemoryRegions::invalidate(transport::PdHandle pd, wire::Qpn qpn, uint32_t key) noexcept {
  MemoryRegion* window = entry(key);
  if (window == nullptr || window->window != WindowType::type_2 || window->key != key ||
      window->pd != pd || !is_bound(*window) || window->qpn != qpn)
    return false;
  unbind(*window);
  return true;
}

}  // namespace rocemu::device
