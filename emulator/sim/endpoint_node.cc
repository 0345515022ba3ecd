#include "emulator/sim/endpoint_node.h"

namespace rocemu::sim {

namespace {

constexpr uint64_t kBaseAddress = 0x10'0000'0000;

}  // namespace

EndpointNode::EndpointNode(Fabric& fabric, uint32_t index, const NodeOptions& options,
                           uint64_t seed, const Decorate& decorate)
    : PollingNode(fabric, index, options, seed),
      memory_(kBaseAddress * (uint64_t{index} + 1)),
      decorated_(decorate ? decorate(memory_) : nullptr),
      endpoint_(decorated_ ? *decorated_ : memory_, *this, options.limits, options.max_qps) {}

void EndpointNode::ring(wire::Qpn qpn) {
  endpoint_.on_doorbell(qpn);
  wake();
}

void EndpointNode::turn(TimeNs now, std::span<const std::span<const std::byte>> frames,
                        std::span<const transport::ReceivedRun> runs) {
  if (!frames.empty()) endpoint_.on_frames(now, frames, icrc(), runs);
  patience_.on_turn(now, endpoint_.next_deadline(), unread());
  if (endpoint_.next_deadline() <= now) endpoint_.on_timeout(now, patience_.answers_by(now));
  endpoint_.transmit(now, *this, options().tx_burst);
}

TimeNs EndpointNode::next_turn(TimeNs now) const {
  return endpoint_.wants_transmit() ? now : endpoint_.next_deadline();
}

void EndpointNode::on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept {
  events.push_back({qpn, false, event});
}

void EndpointNode::on_qp_error(wire::Qpn qpn) noexcept { events.push_back({qpn, true, {}}); }

}  // namespace rocemu::sim
