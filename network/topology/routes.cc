#include "network/topology/routes.h"

#include <deque>
#include <map>

namespace rocemu::network {

Routes::Routes(const Topology& topology)
    : links_(topology.links),
      ports_at_(topology.nodes.size()),
      edge_number_(topology.nodes.size(), kNone),
      port_up_(2 * topology.links.size(), true),
      on_tree_(2 * topology.links.size()) {
  for (const Topology::Node& node : topology.nodes) is_switch_.push_back(node.is_switch);
  for (uint32_t i = 0; i < links_.size(); ++i) {
    ports_at_[links_[i].a].push_back(port_of_link(i, false));
    ports_at_[links_[i].b].push_back(port_of_link(i, true));
  }
  for (const uint32_t host : topology.hosts()) {
    const uint32_t port = ports_at_[host].front();
    const uint32_t edge = far_node(port);
    edge_of_host_.push_back(is_switch_[edge] ? edge : kNone);
    port_to_host_.push_back(peer_of(port));
    if (is_switch_[edge] && edge_number_[edge] == kNone) {
      edge_number_[edge] = static_cast<uint32_t>(edges_.size());
      edges_.push_back(edge);
    }
  }
  compute(std::vector<bool>(links_.size(), true));
}

void Routes::compute(const std::vector<bool>& link_up) {
  for (uint32_t port = 0; port < port_up_.size(); ++port) port_up_[port] = link_up[link_of(port)];
  ports_.clear();
  groups_.assign(1, {});
  group_at_.assign(is_switch_.size() * edges_.size(), 0);
  std::map<std::vector<uint32_t>, uint32_t> known{{{}, 0}};
  for (const uint32_t edge : edges_) {
    const std::vector<uint32_t> distances = distances_from(edge);
    for (uint32_t node = 0; node < is_switch_.size(); ++node) {
      if (!is_switch_[node] || distances[node] == kNone) continue;
      std::vector<uint32_t> hops;
      for (const uint32_t port : ports_at_[node])
        if (port_up_[port] && distances[far_node(port)] == distances[node] - 1)
          hops.push_back(port);
      const auto [at, is_new] = known.try_emplace(hops, static_cast<uint32_t>(groups_.size()));
      if (is_new) {
        groups_.push_back(
            {static_cast<uint32_t>(ports_.size()), static_cast<uint32_t>(hops.size())});
        ports_.insert(ports_.end(), hops.begin(), hops.end());
      }
      group_at_[size_t{node} * edges_.size() + edge_number_[edge]] = at->second;
    }
  }
  plant_tree();
}

std::vector<uint32_t> Routes::distances_from(uint32_t root) const {
  std::vector<uint32_t> distances(is_switch_.size(), kNone);
  std::deque<uint32_t> next = {root};
  distances[root] = 0;
  for (; !next.empty(); next.pop_front()) {
    for (const uint32_t port : ports_at_[next.front()]) {
      const uint32_t node = far_node(port);
      if (!port_up_[port] || !is_switch_[node] || distances[node] != kNone) continue;
      distances[node] = distances[next.front()] + 1;
      next.push_back(node);
    }
  }
  return distances;
}

// One tree for each part of the network that hangs together, its first switch the root.
void Routes::plant_tree() {
  on_tree_.assign(on_tree_.size(), false);
  std::vector<bool> reached(is_switch_.size());
  for (uint32_t root = 0; root < is_switch_.size(); ++root) {
    if (!is_switch_[root] || reached[root]) continue;
    reached[root] = true;
    std::deque<uint32_t> next = {root};
    for (; !next.empty(); next.pop_front()) {
      for (const uint32_t port : ports_at_[next.front()]) {
        const uint32_t node = far_node(port);
        if (!port_up_[port] || reached[node]) continue;
        reached[node] = true;
        on_tree_[port] = on_tree_[peer_of(port)] = true;
        if (is_switch_[node]) next.push_back(node);
      }
    }
  }
}

}  // namespace rocemu::network
