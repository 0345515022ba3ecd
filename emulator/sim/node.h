// One simulated host: an endpoint of the real transport, its memory, and the loop that the NIC's
// engine runs: a burst of received frames, timers, a burst of sent ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/sim/sim_memory.h"
#include "emulator/transport/endpoint.h"

namespace rocemu::sim {

class Fabric;

struct NodeOptions {
  transport::TransportLimits limits;
  uint32_t max_qps = 64;
  bool ipv6 = false;
  uint64_t poll_interval_ns = 500;  // between two turns of the loop, at least 1
  unsigned rx_burst = 32;
  unsigned tx_burst = 32;
  uint32_t no_buffer_ppm = 0;  // how often the sink has no buffer
};

struct NodeEvent {
  wire::Qpn qpn;
  bool own_error = false;  // on_qp_error; else on_qp_event with `event`
  transport::QpEvent event = transport::QpEvent::fatal;
};

class Node : public transport::EventSink, public transport::FrameSink {
 public:
  Node(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed);

  uint32_t index() const { return index_; }
  const wire::Gid& gid() const { return gid_; }
  transport::Endpoint& endpoint() { return endpoint_; }
  SimMemory& memory() { return memory_; }

  // Headers and addresses of the way to `peer`.
  transport::Path path_to(const Node& peer) const;

  // A program rings; the loop turns soon.
  void ring(wire::Qpn qpn);
  // Something was changed from outside (a modify): the loop turns soon.
  void wake();

  // For the fabric.
  void receive(std::vector<std::byte> frame);
  void poll(uint64_t now_ns);
  uint64_t poll_at_ns() const { return poll_at_ns_; }

  std::vector<NodeEvent> events;
  // Called after every turn of the loop, when set.
  std::function<void()> after_poll;

  void on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept override;
  void on_qp_error(wire::Qpn qpn) noexcept override;
  bool allocate(transport::FrameBuffer& buffer) noexcept override;
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override;
  void discard(const transport::FrameBuffer& buffer) noexcept override;

 private:
  void poll_by(uint64_t at_ns);

  Fabric& fabric_;
  uint32_t index_;
  NodeOptions options_;
  wire::Gid gid_;
  SimMemory memory_;
  transport::Endpoint endpoint_;
  Random random_;

  std::deque<std::vector<std::byte>> received_;
  std::vector<std::unique_ptr<std::byte[]>> free_buffers_;
  uint64_t polled_at_ns_ = 0;
  uint64_t poll_at_ns_ = kNever;  // of the turn that is scheduled
};

}  // namespace rocemu::sim
