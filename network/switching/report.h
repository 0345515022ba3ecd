// The counts of each port of a network, for people and tools.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "network/switching/port.h"
#include "network/topology/topology.h"

namespace rocemu::network {

inline constexpr std::string_view kNetworkLossNames[kNetworkLosses] = {
    "malformed",       "not_forwarded", "unknown_destination", "no_route", "no_room", "no_headroom",
    "host_queue_full", "too_many",      "link_down",           "chance"};

struct PortReport {
  std::string node;
  std::string far_node;          // at the other end of its cable
  std::optional<uint32_t> host;  // the host's number, as Topology::hosts() counts; none: a switch's
  std::string device{};          // who has that host; empty: nobody says
  bool up = true;
  uint64_t queue_bytes = 0;  // sum of all priorities
  TimeNs paused_ns = 0;
  PortCounters counters;
};

// The reports are ordered by the number of the port. `now` is not before the network's last event.
template <class Network>
std::vector<PortReport> report(const Network& network, const Topology& topology, TimeNs now) {
  std::vector<PortReport> ports;
  const std::vector<uint32_t> hosts = topology.hosts();
  for (uint32_t port = 0; port < network.port_count(); ++port) {
    const Topology::Link& link = topology.links[link_of(port)];
    const bool at_b = port % 2 != 0;
    PortReport report;
    const uint32_t node = at_b ? link.b : link.a;
    report.node = topology.nodes[node].name;
    if (const auto host = std::ranges::find(hosts, node); host != hosts.end())
      report.host = static_cast<uint32_t>(host - hosts.begin());
    report.far_node = topology.nodes[at_b ? link.a : link.b].name;
    report.up = network.link_up(link_of(port));
    for (unsigned priority = 0; priority < kPriorities; ++priority)
      report.queue_bytes += network.queue_bytes(port, priority);
    report.paused_ns = network.paused_ns(port, now);
    report.counters = network.counters(port);
    ports.push_back(std::move(report));
  }
  return ports;
}

}  // namespace rocemu::network
