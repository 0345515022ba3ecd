// A simulated host that is a bare endpoint of the transport with its memory. The queues of its QPs
// belong to whoever plays the programs (sim_queues.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "emulator/sim/polling_node.h"
#include "emulator/sim/sim_memory.h"
#include "emulator/transport/answer_patience.h"
#include "emulator/transport/endpoint.h"

namespace rocemu::sim {

struct NodeEvent {
  wire::Qpn qpn;
  bool own_error = false;  // on_qp_error; else on_qp_event with `event`
  transport::QpEvent event = transport::QpEvent::fatal;
};

class EndpointNode final : public PollingNode, public transport::EventSink {
 public:
  // Makes a decorator of the node's memory, which outlives the decorator.
  using Decorate = std::function<std::unique_ptr<transport::Memory>(transport::Memory&)>;

  // `decorate` may be empty.
  EndpointNode(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed,
               const Decorate& decorate = {});

  transport::Endpoint& endpoint() { return endpoint_; }
  SimMemory& memory() { return memory_; }

  // A program rings; the loop turns soon.
  void ring(wire::Qpn qpn);

  std::vector<NodeEvent> events;

  void on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept override;
  void on_qp_error(wire::Qpn qpn) noexcept override;

 protected:
  void turn(TimeNs now, std::span<const std::span<const std::byte>> frames,
            std::span<const transport::ReceivedRun> runs) override;
  TimeNs next_turn(TimeNs now) const override;

 private:
  SimMemory memory_;
  std::unique_ptr<transport::Memory> decorated_;  // null: nothing stands there
  transport::Endpoint endpoint_;
  transport::AnswerPatience patience_;
};

}  // namespace rocemu::sim
