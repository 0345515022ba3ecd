// The transport's view of programs' memory: keys are checked in the table, bytes moved in batches.
#pragma once

#include <span>
#include <vector>

#include "emulator/device/memory/memory_regions.h"
#include "emulator/dma/batch.h"

namespace rocemu::device {

class HcaMemory final : public transport::Memory {
 public:
  explicit HcaMemory(MemoryRegions& regions) : regions_(regions) {}

  bool check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, transport::MemoryRange& range) noexcept override;
  bool check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access,
                    transport::MemoryRange& range) noexcept override;
  bool grants_remote(transport::PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                     uint32_t access) noexcept override;
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
  void settle_fetches() noexcept override;
  bool begin_lent(std::span<const std::byte> lent, std::byte* room) noexcept override;
  void end_lent() noexcept override { lent_ = {}; }
  bool take_lent(std::span<const std::byte> lent, std::byte* into) noexcept override;
  void flush_fetches(std::vector<uint32_t>& failed) noexcept override;
  void flush_scatters(std::vector<uint32_t>& failed) noexcept override;
  bool compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                    uint64_t& original) noexcept override;
  bool fetch_add(const transport::MemoryRange& range, uint64_t add,
                 uint64_t& original) noexcept override;

 private:
  // Who decorates this memory may scatter bytes of its own between those of a run.
  bool is_lent(const std::byte* from) const noexcept {
    return from >= lent_.data() && from < lent_.data() + lent_.size();
  }

  MemoryRegions& regions_;
  dma::Batch fetches_{dma::Direction::from_program};
  dma::Batch scatters_{dma::Direction::to_program};
  // The failures of moves that were made before the transport asked for the flush.
  std::vector<uint32_t> failed_fetches_;
  std::vector<uint32_t> failed_scatters_;
  std::span<const std::byte> lent_;  // empty: no scatter is from another program's memory
  std::byte* lent_room_ = nullptr;
};

}  // namespace rocemu::device
