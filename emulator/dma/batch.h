// Collects the moves of a burst and makes them with as few calls and ranges as possible: per
// program, with neighbouring ranges merged on either side.
//
// A call costs some 500 ns whatever it moves, so a burst of 32 frames in one call moves its payload
// at a third of the price of 32 calls. Each remote range costs another 200 ns, so of ranges that
// follow each other within a page what lies between is read as well and thrown away.
//
// Where other threads help (movers.h), the programs of a flush that moves much are divided among
// them. What is one process's, by however many contexts, is moved by one thread. So data and the
// flag that follows it keep their order; and to have several threads in one process would not be
// faster, as they wait for each other in the kernel, at its map and tables of pages
// (docs/performance.md, "Devices and programs at the same time").
//
// Programs wait for the last bytes of a message to see that all of it and of those before is there.
// Where the processor shows stores in any order, those bytes are a range of their own, and nothing
// that is written is merged: between two ranges of a call the kernel lets pages go, by an atomic
// operation that is a full barrier (process_vm_rw_single_vec in mm/process_vm_access.c; mem_rw in
// fs/proc/base.c, which is called for each local range).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/store_order.h"
#include "emulator/dma/address_space.h"

namespace rocemu::dma {

// Transfers of one direction. Within one program they happen in the order they were added, so of
// two that overlap the later one wins; between programs there is no order. Allocates on
// construction and at a thread's first flush only, but for what flush() appends to the caller's
// vector.
class Batch {
 public:
  static constexpr unsigned kDefaultCapacity = 256;
  // To wait for other threads, and to fetch what is in their caches, pays from here on.
  static constexpr size_t kWorthSharingBytes = 64 * 1024;

  explicit Batch(Direction direction, unsigned capacity = kDefaultCapacity,
                 bool stores_seen_in_order = kStoresSeenInOrder);

  // Adds a transfer between `remote` in the program and `local` here; both must stay until the next
  // flush(), as must `space`. Any `remote` is safe. A length of zero is ignored.
  // Precondition: !full().
  void add(AddressSpace& space, uint64_t remote, std::byte* local, uint32_t length_bytes,
           uint32_t tag) noexcept;
  // Adds bytes that are only read. Precondition as well: the direction is to_program.
  void add(AddressSpace& space, uint64_t remote, const std::byte* local, uint32_t length_bytes,
           uint32_t tag) noexcept;

  bool full() const noexcept { return transfers_.size() == capacity_; }
  bool empty() const noexcept { return transfers_.empty(); }

  // Makes all transfers and empties the batch. Appends to `failed` the tag of each that did not
  // move wholly, in the order they were added; part of such a one may have moved. One that fails
  // does not keep those after it from moving, unless the whole program is out of reach.
  void flush(std::vector<uint32_t>& failed) noexcept;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Transfer {
    uint64_t remote;
    std::byte* local;
    uint32_t length_bytes;
    uint32_t tag;
    uint32_t next;    // index of the same program's next transfer, or kNone
    size_t call_end;  // bytes the call has moved when this transfer is done
    bool moved;
  };
  struct Group {
    AddressSpace* space;
    uint32_t first;
    uint32_t last;
    unsigned process;  // counted from 0 in this batch; those that have no number here are one
  };
  struct Call;

  void append_to_group(AddressSpace& space, uint32_t index) noexcept;
  unsigned process_of(const AddressSpace& space) noexcept;
  void move_all() noexcept;
  void move_group(const Group& group) noexcept;
  uint32_t gather(Call& call, const AddressSpace& space, uint32_t first) noexcept;
  uint32_t skippable_bytes(const Call& call, const Transfer& transfer) const noexcept;
  uint32_t mark_moved(uint32_t first, uint32_t end, size_t bytes) noexcept;

  Direction direction_;
  unsigned capacity_;
  bool ends_apart_;  // see above
  std::vector<Transfer> transfers_;
  size_t bytes_ = 0;        // of all transfers
  unsigned processes_ = 0;  // of all groups
  std::vector<Group> groups_;
};

}  // namespace rocemu::dma
