// The translation and protection table: what each key grants (IBTA vol 1, 10.6).
//
// A key is an index into the table and, in its low 8 bits, a tag that changes with every
// registration, so that a stale key meets nothing. lkey and rkey of a region are the same number.
// A memory window has an entry of its own, which grants nothing until it is bound; its tag is
// chosen by who binds it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.h"
#include "emulator/dma/address_space.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::device {

using namespace verbs::access;
// Above the access flags: what a key can be used for at all.
inline constexpr uint32_t kUseAsLkey = 1u << 30;
inline constexpr uint32_t kUseAsRkey = 1u << 31;

using verbs::WindowType;

struct MemoryRegion {
  uint32_t key = 0;
  transport::PdHandle pd = 0;
  uint32_t access = 0;
  WindowType window = WindowType::none;
  uint64_t iova = 0;  // the address that keys are used with
  uint64_t length_bytes = 0;
  uint64_t address = 0;                // in the program
  std::byte* mapped = nullptr;         // the same bytes in this process, where they are mapped
  dma::AddressSpace* space = nullptr;  // null: nothing is granted
  wire::Qpn qpn{};                     // the QP that a window of type 2 is bound for; else 0
  uint32_t region_key = 0;             // a window's: the region it is bound to …
  uint32_t region_generation = 0;      // … and that one's generation, which ends with the region
  uint32_t windows = 0;                // a region's: the windows bound to it
  uint32_t generation = 0;             // the entry's: those that have stood here before
};

class MemoryRegions {
 public:
  // With a seed other than 0 keys are drawn at random.
  explicit MemoryRegions(uint32_t max_entries, uint64_t seed = 0) : max_entries_(max_entries) {
    if (seed != 0) random_.emplace(seed);
  }

  // The key; empty when the table is full. `region.key` is set here.
  std::optional<uint32_t> add(MemoryRegion region);
  // A window that is not bound.
  std::optional<uint32_t> add_window(transport::PdHandle pd, WindowType type);
  // A region or a window; `key` is any one it ever had. Windows bound to a region grant nothing any
  // more.
  void remove(uint32_t key);
  // The region that has this key now, or null: there is none, or it is a window.
  MemoryRegion* find_region(uint32_t key);
  // The entry that a key with this index stands in, whatever its tag; null: there never was one.
  const MemoryRegion* find_entry(uint32_t key) const {
    const uint32_t index = key >> 8;
    return index < regions_.size() ? &regions_[index] : nullptr;
  }
  // Calls `listener` with each key that grants nothing from now on because its region has gone.
  void tell_gone(std::function<void(uint32_t key)> listener) { tell_gone_ = std::move(listener); }
  uint32_t size() const { return size_; }

  // Does what transport::Memory says (IBTA vol 1, 10.6.7.2: C10-72 to C10-75, o10-37).
  bool bind(transport::PdHandle pd, wire::Qpn qpn,
            const transport::WindowBinding& binding) noexcept;
  // Windows of type 2 alone can be invalidated.
  bool invalidate(transport::PdHandle pd, wire::Qpn qpn, uint32_t key) noexcept;

  // The region or window that has `key`, when it grants `access` within `pd` to `qpn`; else null.
  const MemoryRegion* find(transport::PdHandle pd, wire::Qpn qpn, uint32_t key,
                           uint32_t access) const noexcept {
    const uint32_t index = key >> 8;
    if (index >= regions_.size()) return nullptr;
    const MemoryRegion& region = regions_[index];
    if (region.space == nullptr || region.key != key || region.pd != pd) return nullptr;
    if ((access & ~region.access) != 0) return nullptr;
    if (region.window != WindowType::none && !window_grants(region, qpn)) return nullptr;
    return &region;
  }
  // The range that `key` grants, when it grants `access` to all of it.
  bool check(transport::PdHandle pd, wire::Qpn qpn, uint32_t key, uint64_t address,
             uint32_t length_bytes, uint32_t access, transport::MemoryRange& range) const noexcept {
    const MemoryRegion* const region = find(pd, qpn, key, access);
    if (region == nullptr) return false;
    const uint64_t offset = address - region->iova;  // wraps below the region: then too large
    if (offset > region->length_bytes || length_bytes > region->length_bytes - offset) return false;
    range = {region->space, region->address + offset, (region->access & kOnDemand) != 0,
             region->mapped == nullptr ? nullptr : region->mapped + offset};
    return true;
  }

 private:
  // The region that it is bound to is still there.
  bool is_bound(const MemoryRegion& window) const noexcept {
    return window.space != nullptr &&
           regions_[window.region_key >> 8].generation == window.region_generation;
  }
  bool window_grants(const MemoryRegion& window, wire::Qpn qpn) const noexcept {
    return (window.window != WindowType::type_2 || window.qpn == qpn) && is_bound(window);
  }
  uint32_t take_in_order();
  uint32_t take_at_random();
  MemoryRegion* entry(uint32_t key);
  void unbind(MemoryRegion& window);
  bool may_bind(const MemoryRegion& window, transport::PdHandle pd,
                const transport::WindowBinding& binding);

  uint32_t max_entries_;
  uint32_t size_ = 0;
  std::vector<MemoryRegion> regions_;
  std::deque<uint32_t> free_;
  std::optional<Random> random_;
  std::function<void(uint32_t key)> tell_gone_;
};

}  // namespace rocemu::device
