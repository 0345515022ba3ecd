// The memory of one simulated node: byte arrays under keys, reached as the NIC reaches a program's
// memory. Fetches and scatters are only noted; bytes move in the flush calls, not before. A key can
// be made to pass the check and then fail to move, as memory does that was unmapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/transport/interface/host_interface.h"

namespace rocemu::sim {

class SimMemory : public transport::Memory {
 public:
  // Addresses begin at `base_address`.
  explicit SimMemory(uint64_t base_address) : base_(base_address) {}

  // New memory, 8-byte aligned and zero, kGuardBytes of kGuard behind it. Returns its address.
  uint64_t allocate(size_t length_bytes);
  static constexpr size_t kGuardBytes = 16;
  static constexpr std::byte kGuard{0xa5};

  // Registers a range; the key is both lkey and rkey. Precondition: the range lies in the memory.
  uint32_t register_region(transport::PdHandle pd, uint64_t address, uint64_t length_bytes,
                           uint32_t access);
  void deregister(uint32_t key) { regions_.erase(key); }
  // Moves to and from the region fail at the flush, atomics at once; the checks still pass.
  void break_region(uint32_t key) { regions_.at(key).broken = true; }

  // From now on regions lend what runs send from them. Precondition: nothing is allocated after it,
  // as long as runs are under way.
  void lend() { lends_ = true; }
  // How often it has copied what was lent, to where it can be looked at.
  uint64_t taken_lent() const { return taken_lent_; }
  // How often it has put the data of a READ where it belongs.
  uint64_t landed() const { return landed_; }
  // What is lent from now on, by whomever, cannot be had here.
  void lose_lent() { loses_lent_ = true; }

  // True when bytes can move to and from a range that has passed a check.
  static bool moves(const transport::MemoryRange& range);

  // The bytes themselves, for the program's own reads and writes.
  std::span<std::byte> at(uint64_t address, size_t length_bytes);

  // The number of times that scatters were moved, each of which is a system call in the NIC.
  uint64_t scatter_batches() const { return scatter_batches_; }

  // False when something has written behind an allocation.
  bool guards_intact() const;

  bool check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, transport::MemoryRange& range) noexcept override;
  bool check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access,
                    transport::MemoryRange& range) noexcept override;
  bool grants_remote(transport::PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                     uint32_t access) noexcept override;
  // Makes the window's key one of a region; there are no rules here but that the region is known.
  bool bind_window(transport::PdHandle pd, wire::Qpn qpn,
                   const transport::WindowBinding& binding) noexcept override;
  bool invalidate(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey) noexcept override;
  void fetch(const transport::MemoryRange& range, std::byte* into, uint32_t length_bytes,
             uint32_t tag) noexcept override;
  void scatter(const transport::MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override;
  bool can_lend(const transport::MemoryRange& range, uint32_t length_bytes) noexcept override;
  bool can_land(const transport::MemoryRange& range) noexcept override {
    return range.mapped != nullptr;
  }
  bool land(const transport::MemoryRange& range, std::byte* to,
            uint32_t length_bytes) noexcept override;
  bool begin_lent(std::span<const std::byte> lent, std::byte* room) noexcept override;
  bool take_lent(std::span<const std::byte> lent, std::byte* into) noexcept override;
  void flush_fetches(std::vector<uint32_t>& failed) noexcept override;
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override;
  bool compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                    uint64_t& original) noexcept override;
  bool fetch_add(const transport::MemoryRange& range, uint64_t add,
                 uint64_t& original) noexcept override;

 private:
  struct Region {
    transport::PdHandle pd;
    uint64_t address;
    uint64_t length_bytes;
    uint32_t access;
    bool broken;
  };
  struct Fetch {
    transport::MemoryRange range;
    std::byte* into;
    uint32_t length_bytes;
    uint32_t tag;
  };
  struct Scatter {
    transport::MemoryRange range;
    const std::byte* from;
    uint32_t length_bytes;
    uint32_t tag;
  };
  bool check(transport::PdHandle pd, uint32_t key, uint64_t address, uint32_t length_bytes,
             uint32_t access, transport::MemoryRange& range);

  uint64_t base_;
  std::vector<std::byte> bytes_;
  std::vector<size_t> guards_;  // offsets
  std::unordered_map<uint32_t, Region> regions_;
  bool lends_ = false;
  bool loses_lent_ = false;
  uint64_t taken_lent_ = 0;
  uint64_t landed_ = 0;
  uint32_t next_key_ = 0x100;
  std::vector<Fetch> fetches_;
  std::vector<Scatter> scatters_;
  uint64_t scatter_batches_ = 0;
};

}  // namespace rocemu::sim
