// The packets that a responder has taken ahead of the expected PSN: their headers, which are
// executed when their turn comes, and where their payload is. It holds kMax PSNs behind the
// expected one and grows with what is in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/qp/deferred_completions.h"
#include "emulator/wire/headers.h"

namespace rocemu::transport {

class ArrivalsAhead {
 public:
  static constexpr uint32_t kMax = 1024;
  static constexpr size_t kBitmapBytes = kMax / 8;
  // A payload of so many bytes waits here instead of in its place: it may be executed, and not just
  // be placed (an ATOMIC WRITE), or travel in a CQE.
  static constexpr uint32_t kKeptBytes = DeferredCompletions::kMaxKeptBytes;

  struct Arrival {
    wire::Bth bth;
    wire::ExtendedHeaders ext;
    uint32_t payload_bytes = 0;
    bool in_place = false;
    std::array<std::byte, kKeptBytes> kept{};
  };
  // A part of a payload, by its place there.
  struct Piece {
    uint32_t offset_bytes = 0;
    uint32_t length_bytes = 0;
  };
  static constexpr size_t kMaxPieces = 16;

  void release();
  bool empty() const { return count_ == 0; }
  bool has(wire::Psn psn) const { return find(psn) != nullptr; }
  const Arrival* find(wire::Psn psn) const;
  // `range` and `bytes`: the place of a WRITE's payload; 0 bytes: none is in place. Preconditions:
  // `psn` is less than kMax ahead of `expected`, and not there yet; all that is there is not
  // before `expected`.
  Arrival& add(wire::Psn expected, wire::Psn psn, const MemoryRange& range, uint32_t bytes);
  void remove(wire::Psn psn);
  void forget_before(wire::Psn expected);
  // Leaves in `pieces` what a WRITE with `psn` may put of `bytes` to `range`: not what WRITEs
  // behind it have put there already. Returns how many. Where there would be more than kMaxPieces,
  // WRITEs behind it are forgotten, and come again.
  size_t pieces_of(wire::Psn psn, const MemoryRange& range, uint32_t bytes,
                   std::span<Piece, kMaxPieces> pieces);

  // The bits of a selective NAK for `expected` (wire/selective.h). Returns how many bytes.
  size_t write_bitmap(wire::Psn expected, std::span<std::byte, kBitmapBytes> to) const;

 private:
  struct Slot {
    bool used = false;
    wire::Psn psn;
    uint32_t bytes = 0;  // those that a WRITE has put in place; 0: none
    uint64_t address = 0;
    const void* space = nullptr;
  };
  size_t index_of(wire::Psn psn) const { return psn.value() & (slots_.size() - 1); }
  void grow(uint32_t distance);
  void free(Slot& slot);

  std::vector<Slot> slots_;        // a power of two of them, by their PSN
  std::vector<Arrival> arrivals_;  // one for each slot
  uint32_t count_ = 0;
};

}  // namespace rocemu::transport
