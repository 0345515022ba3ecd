#include "emulator/sim/fabric.h"

#include <catch2/catch.hpp>
#include <set>
#include <utility>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/wire/packet.h"

namespace rocemu::sim {
namespace {

// Counts what it gets, and does nothing else.
class Listener : public Node {
 public:
  Listener(Fabric&, uint32_t index, int, uint64_t) : Node(index) {}
  void receive(network::SharedFrame) override { ++received; }
  void poll(TimeNs) override {}
  unsigned received = 0;
};

network::SharedFrame frame_to(const MacAddress& mac) {
  std::vector<std::byte> bytes(60);
  for (size_t i = 0; i < mac.size(); ++i) bytes[i] = std::byte{mac[i]};
  return network::SharedFrame(bytes);
}

}  // namespace

TEST_CASE("thousands of nodes have addresses of their own, and frames find them") {
  Fabric fabric(1);
  std::vector<Listener*> nodes;
  std::set<MacAddress> macs;
  for (int i = 0; i < 3000; ++i) {
    nodes.push_back(&fabric.add_node<Listener>(0));
    macs.insert(nodes.back()->mac());
  }
  CHECK(macs.size() == nodes.size());
  CHECK(nodes[0]->mac() == MacAddress{2, 0, 0, 0, 0, 1});
  for (const unsigned to : {1u, 254u, 255u, 256u, 2999u})
    fabric.carry(*nodes[0], frame_to(nodes[to]->mac()));
  CHECK(fabric.run(kNever - 1));
  for (const unsigned to : {1u, 254u, 255u, 256u, 2999u}) CHECK(nodes[to]->received == 1);
  CHECK(nodes[2]->received == 0);
}

TEST_CASE(
    "a frame goes to nobody when its MAC is nobody's, and to all others when it is a group's") {
  Fabric fabric(1);
  Listener& a = fabric.add_node<Listener>(0);
  Listener& b = fabric.add_node<Listener>(0);
  Listener& c = fabric.add_node<Listener>(0);
  fabric.carry(a, frame_to({2, 0, 0, 0, 0, 99}));
  fabric.carry(a, network::SharedFrame(std::vector<std::byte>(13)));
  CHECK(fabric.run(kNever - 1));
  CHECK(b.received + c.received == 0);
  fabric.carry(a, frame_to({0x33, 0x33, 0, 0, 0, 1}));
  CHECK(fabric.run(kNever - 1));
  CHECK(a.received == 0);
  CHECK(b.received == 1);
  CHECK(c.received == 1);
}

TEST_CASE("the addresses of a node have the last three bytes of its MAC, in IPv4 and in IPv6") {
  const bool ipv6 = GENERATE(false, true);
  Fabric fabric(1);
  NodeOptions options;
  options.ipv6 = ipv6;
  std::vector<EndpointNode*> nodes;
  for (int i = 0; i < 600; ++i) nodes.push_back(&fabric.add_node<EndpointNode>(options));
  const transport::Path path = nodes[0]->path_to(*nodes[599]);
  CHECK(path.remote_gid == nodes[599]->gid());
  CHECK(nodes[599]->gid().bytes[14] == 600 >> 8);
  CHECK(nodes[599]->gid().bytes[15] == (600 & 0xff));
  CHECK(nodes[0]->gid() != nodes[256]->gid());
}

}  // namespace rocemu::sim
