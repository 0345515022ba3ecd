#include "emulator/inspection/key_faults.h"

#include <array>
#include <bit>

namespace rocemu::inspection {

namespace {

using device::MemoryRegion;
using device::MemoryRegions;

const MemoryRegion* find(const MemoryRegions& regions, uint32_t key) {
  const MemoryRegion* const entry = regions.find_entry(key);
  const bool there = entry != nullptr && entry->key == key && entry->space != nullptr &&
                     entry->window == device::WindowType::none;
  return there ? entry : nullptr;
}

// Who asks for no bytes means the region as a whole, or none of it, as FLUSH may.
bool holds(const MemoryRegion& region, uint64_t address, uint32_t length_bytes) {
  if (length_bytes == 0) return true;
  const uint64_t offset = address - region.iova;
  return offset <= region.length_bytes && length_bytes <= region.length_bytes - offset;
}

// Returns the value as it is, and with its bytes and its halves swapped.
std::array<uint64_t, 3> orders_of(uint64_t value) {
  return {value, __builtin_bswap64(value), std::rotl(value, 32)};
}

bool holds_swapped(const MemoryRegion& region, const RefusedAccess& access) {
  for (const uint64_t address : orders_of(access.address))
    if (address != access.address && holds(region, address, access.length_bytes)) return true;
  return false;
}

// The key with its bytes or halves swapped is one of a region of the same domain that has the
// bytes.
bool is_swapped_key(const MemoryRegions& regions, const RefusedAccess& access) {
  for (const uint32_t key : {__builtin_bswap32(access.key), std::rotl(access.key, 16)}) {
    const MemoryRegion* const region = key == access.key ? nullptr : find(regions, key);
    if (region == nullptr || region->pd != access.pd) continue;
    if (holds(*region, access.address, access.length_bytes) || holds_swapped(*region, access))
      return true;
  }
  return false;
}

}  // namespace

std::optional<FindingKind> explain(const RefusedAccess& access, const KeyTables& tables) {
  if (const MemoryRegion* const region = find(tables.owner, access.key)) {
    if (region->pd != access.pd) return FindingKind::other_domain;
    const bool swapped =
        !holds(*region, access.address, access.length_bytes) && holds_swapped(*region, access);
    return swapped ? std::optional(FindingKind::address_swapped) : std::nullopt;
  }
  if (is_swapped_key(tables.owner, access)) return FindingKind::key_swapped;
  if (tables.gone.contains(access.key)) return FindingKind::key_gone;
  const MemoryRegion* const entry = tables.owner.find_entry(access.key);
  if (entry != nullptr && entry->window != device::WindowType::none) return std::nullopt;
  if (tables.requester != nullptr) {
    const MemoryRegion* const own = find(*tables.requester, access.key);
    if (own != nullptr && own->pd == tables.requester_pd) return FindingKind::own_key;
  }
  return FindingKind::key_never_given;
}

}  // namespace rocemu::inspection
