#include "emulator/experiment/sampler.h"

#include <algorithm>

namespace rocemu::experiment {

Sampler::Sampler(const Experiment& experiment, const Cluster& cluster)
    : cluster_(cluster),
      interval_ns_(experiment.results.interval_ns),
      next_(interval_ns_ == 0 ? kNever : interval_ns_) {
  const network::Topology& topology = experiment.network.topology;
  for (const uint32_t port : experiment.results.ports) ports_.push_back({port, true});
  if (!ports_.empty()) return;
  for (uint32_t port = 0; port < cluster.network().port_count(); ++port) {
    const network::Topology::Link& link = topology.links[network::link_of(port)];
    ports_.push_back({port, topology.nodes[port % 2 == 0 ? link.a : link.b].is_switch});
  }
}

void Sampler::look_at(SeenPort& seen, TimeNs now) {
  const auto& network = cluster_.network();
  uint64_t bytes = 0;
  for (unsigned priority = 0; priority < network::kPriorities; ++priority)
    bytes += network.queue_bytes(seen.port, priority);
  if (seen.has_queue && bytes != seen.queue_bytes)
    series_.queues.push_back({now, seen.port, bytes});
  seen.queue_bytes = bytes;
  const uint64_t sent = network.counters(seen.port).pauses_sent;
  const TimeNs paused = network.paused_ns(seen.port, now);
  if (sent != seen.pauses_sent || paused != seen.paused_ns)
    series_.pauses.push_back({now, seen.port, sent - seen.pauses_sent, paused - seen.paused_ns});
  seen.pauses_sent = sent;
  seen.paused_ns = paused;
}

void Sampler::sample(TimeNs now, const std::vector<Flow>& flows) {
  next_ = now + interval_ns_;
  for (SeenPort& port : ports_) look_at(port, now);
  size_t kept = 0;
  for (SeenFlow& seen : active_) {
    const Flow& flow = flows[seen.flow];
    const bool open = flow.state == FlowState::open;
    const uint64_t moved = cluster_.moved_bytes(seen.flow);
    if (moved > seen.moved_bytes)
      series_.rates.push_back({now, seen.flow, moved - seen.moved_bytes,
                               open ? cluster_.allowed_rate_bps(flow.connection) : std::nullopt});
    seen.moved_bytes = moved;
    if (open) active_[kept++] = seen;
  }
  active_.resize(kept);
}

}  // namespace rocemu::experiment
