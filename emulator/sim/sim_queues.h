// Work and completion queues of a simulated program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/sim/sim_memory.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::sim {

// A send request as a program posts it; `inline_payload`, `inline_wqe_data` and `tso_headers` stand
// for what is in queue memory.
struct SendRequest {
  uint64_t wr_id = 0;
  transport::WorkOpcode opcode = transport::WorkOpcode::send;
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  transport::WcStatus fault = transport::WcStatus::success;
  uint32_t immediate = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t address_handle = 0;
  wire::Qpn remote_qpn{};
  uint32_t remote_qkey = 0;
  wire::Qpn remote_srq{};
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  wire::Feth feth{};
  uint32_t flush_bytes = 0;
  transport::WindowBinding binding{};
  std::vector<transport::Sge> sges{};
  std::optional<std::vector<std::byte>> inline_payload{};
  std::vector<std::byte> inline_wqe_data{};  // empty: none
  std::vector<std::byte> tso_headers{};
  uint32_t tso_segment_bytes = 0;
};

struct ReceiveRequest {
  uint64_t wr_id = 0;
  transport::WcStatus fault = transport::WcStatus::success;
  std::vector<transport::Sge> sges{};
};

// Bytes of all SGEs together.
uint32_t total_bytes(const std::vector<transport::Sge>& sges);

class SimSendQueue : public transport::SendQueue {
 public:
  explicit SimSendQueue(size_t depth) : depth_(depth) {}

  // False when the queue is full: as long as a request has not been released, it holds a slot.
  bool post(SendRequest request);

  bool pop(transport::SendWork& work) noexcept override;
  void release(uint32_t count) noexcept override;

  uint64_t posted() const { return posted_; }
  uint64_t popped() const { return released_ + popped_; }
  uint32_t waiting() const noexcept override {
    return static_cast<uint32_t>(slots_.size() - popped_);
  }
  uint32_t released() const noexcept override { return static_cast<uint32_t>(released_); }
  bool full() const { return slots_.size() >= depth_; }

  // Called, when set, with each request that is posted.
  std::function<void(const SendRequest&)> on_post;

 private:
  size_t depth_;
  std::deque<SendRequest> slots_;  // posted and not released, oldest first
  size_t popped_ = 0;              // number of those that were popped
  uint64_t posted_ = 0;
  uint64_t released_ = 0;
};

class SimReceiveQueue : public transport::ReceiveQueue {
 public:
  void post(ReceiveRequest request) {
    if (on_post) on_post(request);
    posted_.push_back(std::move(request));
  }
  bool pop(transport::ReceiveWork& work) noexcept override;
  bool empty() const { return posted_.empty(); }
  uint32_t waiting() const noexcept override { return static_cast<uint32_t>(posted_.size()); }

  // Called, when set, with each request that is posted.
  std::function<void(const ReceiveRequest&)> on_post;

 private:
  std::deque<ReceiveRequest> posted_;
};

class SimCompletionQueue : public transport::CompletionQueue {
 public:
  void push(const transport::Completion& completion) noexcept override;
  bool reaches(const transport::MemoryRange& range) const noexcept override {
    return memory != nullptr && SimMemory::moves(range);
  }

  std::vector<transport::Completion> completions;
  // Called as a program would see the completion: at once.
  std::function<void(const transport::Completion&)> on_push;
  // The memory into which the program copies inline data; null: completions bring none.
  SimMemory* memory = nullptr;
};

}  // namespace rocemu::sim
