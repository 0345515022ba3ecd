// Data that a burst of frames brings is placed in any order of its packets and bytes, sometimes
// with a pause in which programs can look: nobody may rely on what a buffer holds before the
// completion that announces it (IBTA vol 1, 9.5: the order of writes to memory within a message is
// not guaranteed, nor a WRITE to be seen before a later message has completed).
//
// Guarantees:
// - Of two moves that overlap, the later one always comes later: requests of one QP take effect in
//   their order (10.8.3.3, table 76).
// - All of it is in place when flush_scatters() returns, and so before its completion, before its
//   acknowledgement, and before anything that reads it.
// - Eight aligned bytes that are moved alone are moved at once: they may be an ATOMIC WRITE (annex
//   A19).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/passing_memory.h"

namespace rocemu::shake {

class Placement final : public transport::PassingMemory {
 public:
  // `pause` gives programs a moment to look at what is half done; empty: there are none.
  Placement(std::shared_ptr<transport::Memory> inner, Dice dice, std::function<void()> pause)
      : transport::PassingMemory(std::move(inner)), dice_(dice), pause_(std::move(pause)) {}

  void scatter(const transport::MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override {
    scatters_.push_back({range, from, length_bytes, tag, false});
  }
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override;
  bool compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                    uint64_t& original) noexcept override;
  bool fetch_add(const transport::MemoryRange& range, uint64_t add,
                 uint64_t& original) noexcept override;

 private:
  struct Scatter {
    transport::MemoryRange range;
    const std::byte* from;
    uint32_t length_bytes;
    uint32_t tag;
    bool failed;

    bool overlaps(const Scatter& other) const {
      return range.space == other.range.space &&
             range.address < other.range.address + other.length_bytes &&
             other.range.address < range.address + length_bytes;
    }
  };
  struct Piece {
    uint32_t scatter;  // index in scatters_
    uint32_t offset_bytes;
    uint32_t length_bytes;
  };

  void place_all() noexcept;
  size_t end_of_group(size_t first) const;
  void cut(size_t first, size_t end);
  void shuffle();
  void move(std::span<const Piece> pieces) noexcept;

  Dice dice_;
  std::function<void()> pause_;
  std::vector<Scatter> scatters_;
  std::vector<Piece> pieces_;            // pieces of the group that is placed
  std::vector<uint32_t> failed_pieces_;  // pieces of one move() that failed
  std::vector<uint32_t> failed_early_;   // tags of what an atomic has had placed
};

}  // namespace rocemu::shake
