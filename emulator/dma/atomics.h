// Atomics on 8 bytes of a program's memory, as a NIC of atomicity IBV_ATOMIC_HCA gives them: atomic
// against each other, since one caller makes them one after the other, not against the program's
// own instructions nor against writes of the NIC (IBTA vol 1, 9.4.5).
//
// Atomics on memory that is mapped here are the processor's own, so atomic against all of that.
//
// Values are in host byte order. Both return the value from before. nullopt when the memory is out
// of reach or the address is not a multiple of 8; the memory is then as it was.
// Transfers that wait in a Batch have not happened yet: flush it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "emulator/dma/address_space.h"

namespace rocemu::dma {

// Writes `swap` if the value is `compare`.
std::optional<uint64_t> compare_swap(AddressSpace& space, uint64_t address, uint64_t compare,
                                     uint64_t swap) noexcept;

// Adds modulo 2^64.
std::optional<uint64_t> fetch_add(AddressSpace& space, uint64_t address, uint64_t add) noexcept;

// These work on 8 bytes of a MappedFile.
std::optional<uint64_t> compare_swap(std::byte* mapped, uint64_t compare, uint64_t swap) noexcept;
std::optional<uint64_t> fetch_add(std::byte* mapped, uint64_t add) noexcept;

}  // namespace rocemu::dma
