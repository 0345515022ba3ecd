#include "network/topology/topology.h"

namespace rocemu::network {

std::string problem(const Topology& topology) {
  std::vector<unsigned> links_of(topology.nodes.size());
  for (const Topology::Link& link : topology.links) {
    if (link.a >= topology.nodes.size() || link.b >= topology.nodes.size())
      return "a link ends at no node";
    const std::string& name = topology.nodes[link.a].name;
    if (link.a == link.b) return "a link goes from '" + name + "' to itself";
    if (link.settings.rate_bits_per_s == 0)
      return "the link from '" + name + "' to '" + topology.nodes[link.b].name + "' has no rate";
    ++links_of[link.a];
    ++links_of[link.b];
  }
  bool any_host = false;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    if (topology.nodes[i].is_switch) continue;
    any_host = true;
    if (links_of[i] != 1)
      return "host '" + topology.nodes[i].name + "' has " + std::to_string(links_of[i]) +
             " links; a host has one";
  }
  return any_host ? "" : "there is no host";
}

}  // namespace rocemu::network
