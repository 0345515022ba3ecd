// Stands before the device's memory and tells its inspector which accesses there are, and which of
// them are refused. Nothing is changed.
#pragma once

#include <memory>
#include <utility>

#include "emulator/inspection/inspector.h"
#include "emulator/transport/interface/passing_memory.h"

namespace rocemu::inspection {

class InspectedMemory final : public transport::PassingMemory {
 public:
  InspectedMemory(std::unique_ptr<transport::Memory> memory, Inspector& inspector)
      : PassingMemory(std::move(memory)), inspector_(inspector) {}

  bool check_local(transport::PdHandle pd, wire::LKey lkey, uint64_t address, uint32_t length_bytes,
                   uint32_t access, transport::MemoryRange& range) noexcept override {
    const bool granted = inner().check_local(pd, lkey, address, length_bytes, access, range);
    if (granted && (access & transport::kLocalWrite) != 0)
      inspector_.on_local_write(range, length_bytes);
    return granted;
  }
  bool check_remote(transport::PdHandle pd, wire::Qpn qpn, wire::RKey rkey, uint64_t address,
                    uint32_t length_bytes, uint32_t access,
                    transport::MemoryRange& range) noexcept override {
    const bool granted = inner().check_remote(pd, qpn, rkey, address, length_bytes, access, range);
    const RefusedAccess asked{qpn, pd, rkey.value, address, length_bytes};
    if (granted) {
      if ((access & kMoves) != 0) inspector_.on_remote_access(asked, access, range);
    } else {
      inspector_.on_refused_access(asked);
    }
    return granted;
  }
  bool grants_remote(transport::PdHandle pd, wire::Qpn qpn, const wire::Reth& asked,
                     uint32_t access) noexcept override {
    const bool granted = inner().grants_remote(pd, qpn, asked, access);
    if (!granted)
      inspector_.on_refused_access({qpn, pd, asked.rkey.value, asked.virtual_address, 0});
    return granted;
  }
  void scatter(const transport::MemoryRange& range, const std::byte* from, uint32_t length_bytes,
               uint32_t tag) noexcept override {
    inspector_.on_scatter(range, {from, length_bytes});
    inner().scatter(range, from, length_bytes, tag);
  }
  bool compare_swap(const transport::MemoryRange& range, uint64_t compare, uint64_t swap,
                    uint64_t& original) noexcept override {
    if (!inner().compare_swap(range, compare, swap, original)) return false;
    inspector_.on_atomic(range, original, original == compare ? swap : original);
    return true;
  }
  bool fetch_add(const transport::MemoryRange& range, uint64_t add,
                 uint64_t& original) noexcept override {
    if (!inner().fetch_add(range, add, original)) return false;
    inspector_.on_atomic(range, original, original + add);
    return true;
  }

 private:
  // A FLUSH moves nothing.
  static constexpr uint32_t kMoves =
      transport::kRemoteWrite | transport::kRemoteRead | transport::kRemoteAtomic;

  Inspector& inspector_;
};

}  // namespace rocemu::inspection
