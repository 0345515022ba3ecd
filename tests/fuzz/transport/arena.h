// The memory that the transport target's QPs work on: regions with all rights, with few, of another
// protection domain, and some that go away or break while requests use them.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/sim/sim_memory.h"

namespace rocemu::fuzz {

inline constexpr transport::PdHandle kPd = 1;
inline constexpr transport::PdHandle kForeignPd = 2;

class Arena {
 public:
  struct Region {
    uint64_t address = 0;
    uint32_t length_bytes = 0;
    uint32_t key = 0;
  };
  static constexpr uint32_t kRegions = 6;
  static constexpr uint32_t kFirstChanging = 4;  // regions from here on come and go

  Arena();
  sim::SimMemory& memory() { return memory_; }
  const Region& region(uint32_t index) const { return regions_[index % kRegions]; }

  // For the regions that come and go.
  void deregister(uint32_t index);
  void break_moves(uint32_t index);
  void register_anew(uint32_t index);

  // Nothing was written where nothing may be written.
  void check();
  // No run of bytes of the foreign region stands in `bytes`.
  static void check_no_secret(std::span<const std::byte> bytes);

 private:
  void add(uint32_t index, transport::PdHandle pd, uint32_t length_bytes, uint32_t access);
  sim::SimMemory memory_;
  std::array<Region, kRegions> regions_;
};

}  // namespace rocemu::fuzz
