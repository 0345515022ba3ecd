#include "emulator/dma/atomics.h"

#include <atomic>
#include <cstddef>

#include "emulator/dma/guarded_access.h"

namespace rocemu::dma {
namespace {

std::optional<uint64_t> load(AddressSpace& space, uint64_t address) noexcept {
  uint64_t value = 0;
  if (address % sizeof value != 0) return std::nullopt;
  if (!space.move_range(Direction::from_program, address, reinterpret_cast<std::byte*>(&value),
                        sizeof value)) {
    return std::nullopt;
  }
  return value;
}

bool store(AddressSpace& space, uint64_t address, uint64_t value) noexcept {
  return space.move_range(Direction::to_program, address, reinterpret_cast<std::byte*>(&value),
                          sizeof value);
}

// change(value), which returns the value from before.
template <class Change>
std::optional<uint64_t> on_mapped(std::byte* mapped, Change change) noexcept {
  if (reinterpret_cast<uintptr_t>(mapped) % sizeof(uint64_t) != 0) return std::nullopt;
  uint64_t before = 0;
  const bool there = guarded(
      [&] { before = change(std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(mapped))); });
  return there ? std::optional(before) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> compare_swap(AddressSpace& space, uint64_t address, uint64_t compare,
                                     uint64_t swap) noexcept {
  const std::optional<uint64_t> before = load(space, address);
  if (before != compare) return before;
  return store(space, address, swap) ? before : std::nullopt;
}

std::optional<uint64_t> fetch_add(AddressSpace& space, uint64_t address, uint64_t add) noexcept {
  const std::optional<uint64_t> before = load(space, address);
  if (!before) return std::nullopt;
  return store(space, address, *before + add) ? before : std::nullopt;
}

std::optional<uint64_t> compare_swap(std::byte* mapped, uint64_t compare, uint64_t swap) noexcept {
  return on_mapped(mapped, [=](std::atomic_ref<uint64_t> value) {
    uint64_t before = compare;
    value.compare_exchange_strong(before, swap);
    return before;
  });
}

std::optional<uint64_t> fetch_add(std::byte* mapped, uint64_t add) noexcept {
  return on_mapped(mapped, [=](std::atomic_ref<uint64_t> value) { return value.fetch_add(add); });
}

}  // namespace rocemu::dma
