#include "emulator/dma/atomics.h"

#include <cstddef>

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

}  // namespace rocemu::dma
