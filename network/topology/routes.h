// The ports of a switch that lead to a host by a shortest path, all of them; and the ports that
// form a tree for frames to everybody. Computed at once for all, again when a link goes down or up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/topology/topology.h"

namespace rocemu::network {

class Routes {
 public:
  explicit Routes(const Topology& topology);

  // link_up[i] is that of link i. Paths lead through switches alone.
  void compute(const std::vector<bool>& link_up);

  // In ascending order; empty when there is no path. `node` is a switch. The span is good until the
  // next compute().
  std::span<const uint32_t> next_hops(uint32_t node, uint32_t host) const noexcept {
    const uint32_t edge = edge_of_host_[host];
    if (edge == kNone) return {};
    if (node == edge) return std::span(&port_to_host_[host], port_up_[port_to_host_[host]] ? 1 : 0);
    const Group group = groups_[group_at_[size_t{node} * edges_.size() + edge_number_[edge]]];
    return std::span(ports_).subspan(group.first, group.count);
  }
  // True of the ports by which a frame to everybody goes on.
  bool on_tree(uint32_t port) const noexcept { return on_tree_[port]; }
  std::span<const uint32_t> ports_at(uint32_t node) const noexcept { return ports_at_[node]; }

 private:
  struct Group {
    uint32_t first = 0;  // in ports_
    uint32_t count = 0;
  };

  uint32_t far_node(uint32_t port) const noexcept {
    const Topology::Link& link = links_[link_of(port)];
    return port % 2 == 0 ? link.b : link.a;
  }
  // Links from `root` to each switch, kNone where there is no path.
  std::vector<uint32_t> distances_from(uint32_t root) const;
  void plant_tree();

  std::vector<bool> is_switch_;
  std::vector<Topology::Link> links_;
  std::vector<std::vector<uint32_t>> ports_at_;  // by node
  std::vector<uint32_t> edges_;                  // switches that have hosts
  std::vector<uint32_t> edge_number_;            // by node: its place in edges_
  std::vector<uint32_t> edge_of_host_;           // kNone: its link leads to another host
  std::vector<uint32_t> port_to_host_;           // by host: the port at the other end of its link
  std::vector<bool> port_up_;
  std::vector<bool> on_tree_;
  std::vector<uint32_t> ports_;  // ports of the groups
  std::vector<Group> groups_;
  std::vector<uint32_t> group_at_;  // by node and number of the edge
};

}  // namespace rocemu::network
