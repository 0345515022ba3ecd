// SharedCompletionRing is the ring of a CQ in memory that the program writes to
// (verbs_shim/abi/rings.h). The producer index that counts is private; the program's consumer index
// can do no more than make the ring look full.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/daemon/rings/completion_host.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/device/attributes/qp_attributes.h"
#include "emulator/device/interface/host_interface.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {

class SharedCompletionRing final : public device::CompletionRing {
 public:
  // `memory` holds cq_memory_bytes(entries), of which `entries` are used at a time; `host` outlives
  // the ring.
  SharedCompletionRing(SharedMemory memory, uint32_t entries, CompletionHost& host);

  uint32_t entries() const noexcept override { return entries_; }
  bool push(const transport::Completion& completion) noexcept override;
  bool show() noexcept override;
  bool take_arm() noexcept override;
  uint32_t unread() const noexcept override;
  bool take_over(device::CompletionRing& old_ring) noexcept override;
  bool prepare_to_take_over(device::CompletionRing& old_ring) noexcept override;
  void watch_polls(device::PollWatch* watch) noexcept override;
  void tell_polled() noexcept override;

 private:
  bool full() noexcept;
  bool take_sleepers() noexcept;
  void wake_sleepers(uint32_t completions) noexcept;
  void take(const SharedCompletionRing& old, uint32_t count) noexcept;
  std::byte* entry(uint32_t index) const {
    return ring_ + size_t{index & mask_} * sizeof(rocemu_cqe);
  }

  SharedMemory memory_;
  rocemu_cq_header& header_;
  std::byte* ring_;
  uint32_t entries_;
  uint32_t mask_;
  CompletionHost& host_;
  uint32_t producer_ = 0;
  uint32_t published_ = 0;
  uint32_t seen_consumer_ = 0;
  // In a ring that takes over another: the number of completions that it has taken, and the index
  // of the first one in the old ring.
  uint32_t taken_ = 0;
  uint32_t taken_from_ = 0;
  // Both tell of the completions that are not shown to the program yet.
  bool answers_ = false;  // the program can go on with one of them
  device::PollWatch* watch_ = nullptr;
  uint32_t told_ = 0;              // watched: the first that nobody has been told of
  std::vector<uint32_t> numbers_;  // watched: by slot
  bool wakes_solicited_ = false;   // one of them wakes a program that armed for solicited ones
};

}  // namespace rocemu::daemon
