#include "network/topology/topology.h"

#include <catch2/catch.hpp>
#include <set>

#include "network/topology/kinds.h"
#include "network/topology/routes.h"

namespace rocemu::network {
namespace {

const KindLinks kLinks;

uint32_t node_named(const Topology& topology, const std::string& name) {
  for (uint32_t i = 0; i < topology.nodes.size(); ++i)
    if (topology.nodes[i].name == name) return i;
  FAIL(name);
  return 0;
}

uint32_t far_node(const Topology& topology, uint32_t port) {
  const Topology::Link& link = topology.links[link_of(port)];
  return port % 2 == 0 ? link.b : link.a;
}

// The links that a frame crosses from one host to another, always by the first of the next hops.
unsigned hops(const Topology& topology, const Routes& routes, uint32_t from, uint32_t to) {
  uint32_t node = far_node(topology, routes.ports_at(topology.hosts()[from]).front());
  unsigned count = 1;
  for (; topology.nodes[node].is_switch; ++count) {
    const auto next = routes.next_hops(node, to);
    REQUIRE_FALSE(next.empty());
    node = far_node(topology, next.front());
  }
  CHECK(node == topology.hosts()[to]);
  return count;
}

}  // namespace

TEST_CASE("kinds have as many hosts, switches and links as they should, and are networks") {
  const auto counts = [](const Topology& topology) {
    CHECK(problem(topology).empty());
    const size_t hosts = topology.hosts().size();
    return std::vector<size_t>{hosts, topology.nodes.size() - hosts, topology.links.size()};
  };
  CHECK(counts(pair({})) == std::vector<size_t>{2, 0, 1});
  CHECK(counts(dumbbell(3, 2, kLinks)) == std::vector<size_t>{5, 2, 6});
  CHECK(counts(star(7, {})) == std::vector<size_t>{7, 1, 7});
  CHECK(counts(leaf_spine(8, 8, 16, kLinks)) == std::vector<size_t>{128, 16, 192});
  CHECK(counts(fat_tree(6, 3, kLinks)) == std::vector<size_t>{54, 45, 54 + 108});
  CHECK(counts(fat_tree(16, 8, kLinks)) == std::vector<size_t>{1024, 320, 3072});
}

TEST_CASE("every switch of a fat-tree of k has k ports, none of them twice to the same node") {
  const Topology topology = fat_tree(6, 3, kLinks);
  const Routes routes(topology);
  for (uint32_t node = 0; node < topology.nodes.size(); ++node) {
    std::set<uint32_t> peers;
    for (const uint32_t port : routes.ports_at(node)) peers.insert(far_node(topology, port));
    CHECK(peers.size() == (topology.nodes[node].is_switch ? 6 : 1));
  }
}

TEST_CASE("routes of a fat-tree: as short as they can be, all of them") {
  const Topology topology = fat_tree(4, 2, kLinks);
  const Routes routes(topology);
  CHECK(hops(topology, routes, 0, 1) == 2);   // of one edge switch
  CHECK(hops(topology, routes, 0, 2) == 4);   // of one pod
  CHECK(hops(topology, routes, 0, 15) == 6);  // by a core switch
  CHECK(routes.next_hops(node_named(topology, "edge0"), 15).size() == 2);
  CHECK(routes.next_hops(node_named(topology, "agg0"), 15).size() == 2);
  CHECK(routes.next_hops(node_named(topology, "core0"), 15).size() == 1);
  CHECK(routes.next_hops(node_named(topology, "agg0"), 0).size() == 1);
}

TEST_CASE("routes avoid what is down, and there are none to a host whose link is") {
  const Topology topology = leaf_spine(2, 3, 1, kLinks);
  Routes routes(topology);
  const uint32_t leaf0 = node_named(topology, "leaf0");
  CHECK(routes.next_hops(leaf0, 1).size() == 3);
  std::vector<bool> up(topology.links.size(), true);
  up[2] = false;          // leaf0 to spine0
  up[2 + 3 + 1] = false;  // leaf1 to spine1
  routes.compute(up);
  REQUIRE(routes.next_hops(leaf0, 1).size() == 1);
  CHECK(far_node(topology, routes.next_hops(leaf0, 1).front()) == node_named(topology, "spine2"));
  up[1] = false;
  routes.compute(up);
  CHECK(routes.next_hops(node_named(topology, "leaf1"), 1).empty());
}

TEST_CASE("frames to everybody go by a tree: all nodes, no circle") {
  for (const Topology& topology : {leaf_spine(4, 3, 2, kLinks), fat_tree(4, 2, kLinks)}) {
    const Routes routes(topology);
    size_t ports = 0;
    for (uint32_t port = 0; port < 2 * topology.links.size(); ++port) {
      CHECK(routes.on_tree(port) == routes.on_tree(peer_of(port)));
      ports += routes.on_tree(port);
    }
    CHECK(ports / 2 == topology.nodes.size() - 1);
  }
}

TEST_CASE("what is no network says why") {
  Topology topology = star(2, {});
  CHECK(problem(topology).empty());
  topology.add_host("alone");
  CHECK(problem(topology) == "host 'alone' has 0 links; a host has one");
  topology.connect(0, 3, {});
  CHECK(problem(topology) == "host 'h0' has 2 links; a host has one");
  Topology loop = star(2, {});
  loop.connect(2, 2, {});
  CHECK(problem(loop) == "a link goes from 's0' to itself");
  CHECK(problem({}) == "there is no host");
  Topology still = pair({.rate_bits_per_s = 0});
  CHECK(problem(still) == "the link from 'h0' to 'h1' has no rate");
}

}  // namespace rocemu::network
