// Stand-ins for programs' memory and queues in the NICs of a simulation: every key is good for
// every address, and nothing is moved.
#pragma once

#include "emulator/transport/interface/host_interface.h"

namespace rocemu::experiment {

class AbsentMemory final : public transport::Memory {
 public:
  bool check_local(transport::PdHandle, wire::LKey, uint64_t address, uint32_t, uint32_t,
                   transport::MemoryRange& range) noexcept override {
    range = {.address = address};
    return true;
  }
  bool check_remote(transport::PdHandle, wire::Qpn, wire::RKey, uint64_t address, uint32_t,
                    uint32_t, transport::MemoryRange& range) noexcept override {
    range = {.address = address};
    return true;
  }
  bool grants_remote(transport::PdHandle, wire::Qpn, const wire::Reth&,
                     uint32_t) noexcept override {
    return true;
  }
  bool bind_window(transport::PdHandle, wire::Qpn,
                   const transport::WindowBinding&) noexcept override {
    return false;
  }
  bool invalidate(transport::PdHandle, wire::Qpn, wire::RKey) noexcept override { return false; }
  void fetch(const transport::MemoryRange&, std::byte*, uint32_t, uint32_t) noexcept override {}
  void scatter(const transport::MemoryRange&, const std::byte*, uint32_t,
               uint32_t) noexcept override {}
  void flush_fetches(std::vector<uint32_t>&) noexcept override {}
  void flush_scatters(std::vector<uint32_t>&) noexcept override {}
  bool compare_swap(const transport::MemoryRange&, uint64_t, uint64_t,
                    uint64_t&) noexcept override {
    return false;
  }
  bool fetch_add(const transport::MemoryRange&, uint64_t, uint64_t&) noexcept override {
    return false;
  }
};

// A receive for every message, as long as any message is.
class EndlessReceives final : public transport::ReceiveQueue {
 public:
  static constexpr uint32_t kBytes = 1u << 31;

  bool pop(transport::ReceiveWork& work) noexcept override {
    const transport::Sge all{0, kBytes, {}};
    work.wr_id = 0;
    work.fault = transport::WcStatus::success;
    work.length_bytes = kBytes;
    work.sges.assign({&all, 1});
    return true;
  }
};

}  // namespace rocemu::experiment
