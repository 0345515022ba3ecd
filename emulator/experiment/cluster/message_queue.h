// A send queue of messages that are nothing but a length.
#pragma once

#include <cstdint>

#include "emulator/experiment/cluster/absent_memory.h"
#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/qp/ring_buffer.h"

namespace rocemu::experiment {

struct Message {
  uint32_t flow = 0;  // the flow that it belongs to
  uint32_t length_bytes = 0;
  transport::WorkOpcode opcode = transport::WorkOpcode::write;
  bool last = true;  // last one of its flow, whose completion is told
};

class MessageQueue final : public transport::SendQueue {
 public:
  void post(const Message& message) { messages_.push_back() = message; }

  bool pop(transport::SendWork& work) noexcept override {
    if (messages_.empty()) return false;
    const Message message = messages_.front();
    messages_.pop_front();
    const uint64_t address = address_of(message.flow, offset_bytes_);
    offset_bytes_ = (offset_bytes_ + message.length_bytes) % kOffsetsBytes;
    const transport::Sge all{address, message.length_bytes, {}};
    work.wr_id = message.flow;
    work.opcode = message.opcode;
    work.signaled = message.last;
    work.solicited = work.fence = false;
    work.fault = transport::WcStatus::success;
    work.immediate = message.flow;
    work.remote_address = address;
    work.length_bytes = message.length_bytes;
    work.inline_payload = work.inline_wqe_data = nullptr;
    work.sges.assign({&all, 1});
    return true;
  }
  void release(uint32_t) noexcept override {}

 private:
  // Messages under way lie beside each other: of two that overlapped, a receiver with selective
  // repeat would not write what the second has written before the first.
  static constexpr uint32_t kOffsetsBytes = 1u << 31;

  transport::RingBuffer<Message> messages_;
  uint32_t offset_bytes_ = 0;
};

}  // namespace rocemu::experiment
