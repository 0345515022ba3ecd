// Stand-ins for programs' memory and queues in the NICs of a simulation: every key is good for
// every address, and nothing is moved. What would have been is counted, by the flow that it is of.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/qp/ring_buffer.h"

namespace rocemu::experiment {

// A flow's bytes have addresses of their own.
constexpr unsigned kFlowShift = 32;
constexpr uint64_t address_of(uint32_t flow, uint32_t offset_bytes) {
  return uint64_t{flow} << kFlowShift | offset_bytes;
}

class AbsentMemory final : public transport::Memory {
 public:
  // Flows of smaller numbers have come before.
  void make_room_for(uint32_t flow) {
    if (flow >= arrived_bytes_.size()) arrived_bytes_.resize(size_t{flow} + 1);
  }
  // Payload that was written or received, or came by READs: what is dropped, or comes once more, is
  // none. Precondition: there is room for `flow`.
  uint64_t arrived_bytes(uint32_t flow) const { return arrived_bytes_[flow]; }

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
  void scatter(const transport::MemoryRange& range, const std::byte*, uint32_t length_bytes,
               uint32_t) noexcept override {
    arrived_bytes_[range.address >> kFlowShift] += length_bytes;
  }
  void flush_fetches(std::vector<uint32_t>&) noexcept override {}
  void flush_scatters(std::vector<uint32_t>&) noexcept override {}
  bool compare_swap(const transport::MemoryRange&, uint64_t, uint64_t,
                    uint64_t&) noexcept override {
    return false;
  }
  bool fetch_add(const transport::MemoryRange&, uint64_t, uint64_t&) noexcept override {
    return false;
  }

 private:
  std::vector<uint64_t> arrived_bytes_;  // by flow
};

// A receive for every message that takes one, as long as any message is.
class ExpectedReceives final : public transport::ReceiveQueue {
 public:
  static constexpr uint32_t kBytes = 1u << 31;

  // The peer has posted a message of this flow: RC takes receives in that order.
  void expect(uint32_t flow) { flows_.push_back() = flow; }

  bool pop(transport::ReceiveWork& work) noexcept override {
    if (flows_.empty()) return false;
    const transport::Sge all{address_of(flows_.front(), 0), kBytes, {}};
    flows_.pop_front();
    work.wr_id = 0;
    work.fault = transport::WcStatus::success;
    work.length_bytes = kBytes;
    work.sges.assign({&all, 1});
    return true;
  }

 private:
  transport::RingBuffer<uint32_t> flows_;
};

}  // namespace rocemu::experiment
