// A NIC in virtual time: an endpoint of the transport at a host of the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/transport/endpoint.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::experiment {

// Buffers in which the transport builds frames, for all NICs: one of them transmits at a time.
class BuildingBuffers {
 public:
  std::byte* take() {
    if (free_.empty()) {
      buffers_.push_back(std::make_unique<std::byte[]>(transport::kMaxFrameBytes));
      return buffers_.back().get();
    }
    std::byte* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(std::byte* buffer) noexcept { free_.push_back(buffer); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
  std::vector<std::byte*> free_;
};

// `Wire` has send(host, bytes, length_bytes).
template <class Wire>
class Nic final : private transport::EventSink, private transport::FrameSink {
 public:
  Nic(Wire& wire, uint32_t host, BuildingBuffers& buffers, transport::Memory& memory,
      const transport::TransportLimits& limits, uint32_t max_qps)
      : wire_(wire), host_(host), buffers_(buffers), endpoint_(memory, *this, limits, max_qps) {}

  transport::Endpoint& endpoint() { return endpoint_; }
  const transport::Endpoint& endpoint() const { return endpoint_; }
  unsigned transmit(TimeNs now, unsigned max_frames) {
    return endpoint_.transmit(now, *this, max_frames);
  }

 private:
  bool allocate(transport::FrameBuffer& buffer) noexcept override {
    buffer.data = buffers_.take();
    return true;
  }
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override {
    wire_.send(host_, buffer.data, length_bytes);
    buffers_.give_back(buffer.data);
  }
  void discard(const transport::FrameBuffer& buffer) noexcept override {
    buffers_.give_back(buffer.data);
  }
  // Payload is not moved here, and a frame that was changed on its way does not arrive.
  bool may_owe_icrc() const noexcept override { return true; }
  // The completions of its requests tell what becomes of a QP.
  void on_qp_event(wire::Qpn, transport::QpEvent) noexcept override {}
  void on_qp_error(wire::Qpn) noexcept override {}

  Wire& wire_;
  uint32_t host_;
  BuildingBuffers& buffers_;
  transport::Endpoint endpoint_;
};

}  // namespace rocemu::experiment
