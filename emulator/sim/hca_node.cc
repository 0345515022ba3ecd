#include "emulator/sim/hca_node.h"

#include <algorithm>

namespace rocemu::sim {

namespace {

constexpr TimeNs kEventRetryNs = 1'000'000;  // for events that found their pipe full
constexpr size_t kNodeBytes = 3;             // the end of an address, which is also the MAC's

device::HcaConfig config_of(const PollingNode& node, const NodeOptions& options) {
  device::HcaConfig config = device::default_config(node.index());
  config.limits.max_qp = options.max_qps;
  config.port.mac = node.mac();
  const size_t network_bytes = node.gid().bytes.size() - kNodeBytes;
  config.port.gids = {{node.gid(), static_cast<uint8_t>(8 * network_bytes)}};
  return config;
}

}  // namespace

HcaNode::HcaNode(Fabric& fabric, uint32_t index, const NodeOptions& options, uint64_t seed,
                 const device::HcaParts& parts)
    : PollingNode(fabric, index, options, seed),
      hca_(config_of(*this, options), options.limits, *this, parts) {}

void HcaNode::ring(wire::Qpn qpn) {
  hca_.endpoint().on_doorbell(qpn);
  wake();
}

void HcaNode::turn(TimeNs now, std::span<const std::span<const std::byte>> frames,
                   std::span<const transport::ReceivedRun> runs) {
  transport::Endpoint& endpoint = hca_.endpoint();
  if (!frames.empty()) endpoint.on_frames(now, frames, icrc(), runs);
  patience_.on_turn(now, endpoint.next_deadline(), unread());
  if (endpoint.next_deadline() <= now) endpoint.on_timeout(now, patience_.answers_by(now));
  endpoint.transmit(now, *this, options().tx_burst);
  events_wait_ = hca_.publish_completions(now);
}

TimeNs HcaNode::next_turn(TimeNs now) const {
  if (hca_.endpoint().wants_transmit() || hca_.has_news()) return now;
  const TimeNs due = std::min(hca_.endpoint().next_deadline(), hca_.next_held_event());
  return events_wait_ ? std::min(due, now + kEventRetryNs) : due;
}

bool HcaNode::resolve(const wire::Gid& peer, MacAddress& peer_mac) noexcept {
  const auto own_node = gid().bytes.end() - kNodeBytes;
  const auto peer_node = peer.bytes.end() - kNodeBytes;
  if (!std::equal(gid().bytes.begin(), own_node, peer.bytes.begin())) return false;
  peer_mac = mac();
  std::copy(peer_node, peer.bytes.end(), peer_mac.end() - kNodeBytes);
  return true;
}

}  // namespace rocemu::sim
