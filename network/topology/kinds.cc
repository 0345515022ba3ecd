#include "network/topology/kinds.h"

#include <string>

namespace rocemu::network {
namespace {

void add_hosts(Topology& topology, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) topology.add_host("h" + std::to_string(i));
}

// Returns the first of them.
uint32_t add_switches(Topology& topology, const std::string& name, uint32_t count) {
  const auto first = static_cast<uint32_t>(topology.nodes.size());
  for (uint32_t i = 0; i < count; ++i) topology.add_switch(name + std::to_string(i));
  return first;
}

}  // namespace

Topology pair(const LinkSettings& link) {
  Topology topology;
  add_hosts(topology, 2);
  topology.connect(0, 1, link);
  return topology;
}

Topology dumbbell(uint32_t left, uint32_t right, const KindLinks& links) {
  Topology topology;
  add_hosts(topology, left + right);
  const uint32_t first = add_switches(topology, "s", 2);
  for (uint32_t i = 0; i < left + right; ++i)
    topology.connect(i, i < left ? first : first + 1, links.host);
  topology.connect(first, first + 1, links.fabric);
  return topology;
}

Topology star(uint32_t hosts, const LinkSettings& link) {
  Topology topology;
  add_hosts(topology, hosts);
  const uint32_t hub = add_switches(topology, "s", 1);
  for (uint32_t i = 0; i < hosts; ++i) topology.connect(i, hub, link);
  return topology;
}

Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const KindLinks& links) {
  Topology topology;
  add_hosts(topology, leaves * hosts_per_leaf);
  const uint32_t leaf = add_switches(topology, "leaf", leaves);
  const uint32_t spine = add_switches(topology, "spine", spines);
  for (uint32_t i = 0; i < leaves * hosts_per_leaf; ++i)
    topology.connect(i, leaf + i / hosts_per_leaf, links.host);
  for (uint32_t i = 0; i < leaves; ++i)
    for (uint32_t j = 0; j < spines; ++j) topology.connect(leaf + i, spine + j, links.fabric);
  return topology;
}

Topology fat_tree(uint32_t k, uint32_t hosts_per_edge, const KindLinks& links) {
  const uint32_t half = k / 2;
  const uint32_t edges = k * half;
  Topology topology;
  add_hosts(topology, edges * hosts_per_edge);
  const uint32_t edge = add_switches(topology, "edge", edges);
  const uint32_t aggregation = add_switches(topology, "agg", edges);
  const uint32_t core = add_switches(topology, "core", half * half);
  for (uint32_t i = 0; i < edges * hosts_per_edge; ++i)
    topology.connect(i, edge + i / hosts_per_edge, links.host);
  for (uint32_t i = 0; i < edges; ++i) {
    const uint32_t pod = i / half;
    for (uint32_t j = 0; j < half; ++j) {
      topology.connect(edge + i, aggregation + pod * half + j, links.fabric);
      // The i-th aggregation switch of each pod has the i-th group of core switches.
      topology.connect(aggregation + i, core + i % half * half + j, links.fabric);
    }
  }
  return topology;
}

}  // namespace rocemu::network
