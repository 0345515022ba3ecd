#include "network/description/description.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>

#include "network/description/ns3_topology.h"

namespace rocemu::network {
namespace {

Description read(const std::string& text) {
  ParsedDescription parsed = parse_description(text, "n.toml");
  INFO(parsed.error);
  REQUIRE(parsed.description);
  return std::move(*parsed.description);
}

std::string error_of(const std::string& text) {
  const ParsedDescription parsed = parse_description(text, "n.toml");
  CHECK_FALSE(parsed.description);
  return parsed.error;
}

const std::string kStar = "[topology]\nkind = \"star\"\nhosts = 4\n";

}  // namespace

TEST_CASE("a description with everything") {
  const Description network = read(R"(
# A network.
seed = 7
overhead = "24b"   # Ethernet's
reroute = "1ms"
failures = [
  "leaf0 spine1 down 1ms up 5ms",  # once
  "leaf1 h5 down 2us up 3us every 10us",
]

[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
oversubscription = 2

[links]
rate = "40gbit"
delay = "2us"
loss = "1ppm"

[fabric_links]
delay = "5us"

[hosts]
queue = "1mb"

[switch]
buffer = "9mb"
alpha = 0.0625
queue_limit = "200kb"

[ecn]
kmin = "100kb"
kmax = "400kb"
pmax = "20%"
at_rate = "25gbit"

[pfc]
priorities = [3, 4]
xoff = "220kb"
xon = "200kb"
headroom = "50kb"
quanta = 1000

[priorities]
by = "pcp"
dscp = ["26=3", "48=6"]
strict = [6, 7]
weights = [1, 2, 3, 4, 5, 6, 7, 8]
quantum = "4kb"

[paths]
by = "flowlet"
gap = "100us"

[trimming]
keep = "80b"
priority = 6
dscp = 45
)");
  CHECK(network.topology.hosts().size() == 8);
  const LinkSettings host{40'000'000'000, 2000, 1};
  CHECK(network.topology.links.front().settings == host);
  // 4 x 40 over 2 links is 80, and half of that is 40.
  CHECK(network.topology.links.back().settings == LinkSettings{40'000'000'000, 5000, 1});
  const NetworkSettings& s = network.settings;
  CHECK(s.seed == 7);
  CHECK(s.overhead_bytes == 24);
  CHECK(s.reroute_ns == 1'000'000);
  CHECK(s.host_queue_bytes == 1'000'000);
  REQUIRE(s.failures.size() == 2);
  CHECK(s.failures[0].link == 9);
  CHECK(s.failures[0].down_ns == 1'000'000);
  CHECK(s.failures[0].every_ns == 0);
  CHECK(s.failures[1].link == 5);
  CHECK(s.failures[1].up_ns == 3000);
  CHECK(s.failures[1].every_ns == 10'000);
  CHECK(s.switches.buffer_bytes == 9'000'000);
  CHECK(s.switches.alpha_ppm == 62'500);
  CHECK(s.switches.queue_limit_bytes == 200'000);
  REQUIRE(s.switches.ecn);
  CHECK(s.switches.ecn->kmin_bytes == 100'000);
  CHECK(s.switches.ecn->pmax_ppm == 200'000);
  CHECK(s.switches.ecn->at_rate_bits_per_s == 25'000'000'000);
  CHECK(s.switches.pfc.lossless == 0b1'1000);
  CHECK(s.switches.pfc.xon_bytes == 200'000);
  CHECK(s.switches.pfc.quanta == 1000);
  CHECK(s.priority_by == PriorityBy::pcp);
  CHECK(s.priority_of_dscp[26] == 3);
  CHECK(s.priority_of_dscp[48] == 6);
  CHECK(s.priority_of_dscp[8] == 1);
  CHECK(s.switches.scheduling.strict == 0xc0);
  CHECK(s.switches.scheduling.weights[7] == 8);
  CHECK(s.switches.scheduling.quantum_bytes == 4000);
  CHECK(s.switches.paths.by == PathBy::flowlet);
  CHECK(s.switches.paths.flowlet_gap_ns == 100'000);
  REQUIRE(s.switches.trim);
  CHECK(s.switches.trim->keep_bytes == 80);
  CHECK(s.switches.trim->dscp == 45);
}

TEST_CASE("what a description does not say is off, or as settings.h has it") {
  const Description network = read(kStar);
  CHECK(network.topology.hosts().size() == 4);
  CHECK_FALSE(network.settings.switches.ecn);
  CHECK_FALSE(network.settings.switches.trim);
  CHECK(network.settings.switches.pfc.lossless == 0);
  CHECK(network.topology.links[0].settings == LinkSettings{});
}

TEST_CASE("switches that are not like the others") {
  const Description network = read(R"([topology]
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 2
[switches.old]
names = ["leaf1..leaf2", "spine0"]
[switches.old.switch]
buffer = "2mb"
[switches.old.ecn]
use = "off"
[switches.old.pfc]
priorities = []
[switches.old.priorities]
strict = [7]
[switches.edge]
names = ["leaf0"]
ecn.kmin = "5kb"
trimming.keep = "80b"
paths.by = "packet"
# The usual ones may stand behind.
[ecn]
kmin = "10kb"
kmax = "20kb"
[pfc]
priorities = [3]
)");
  const NetworkSettings& s = network.settings;
  std::map<std::string, uint32_t> nodes;
  for (uint32_t i = 0; i < network.topology.nodes.size(); ++i)
    nodes[network.topology.nodes[i].name] = i;
  CHECK(s.other_switches.size() == 4);
  CHECK(s.of_node(nodes["spine1"]).buffer_bytes == SwitchSettings{}.buffer_bytes);
  CHECK(s.of_node(nodes["spine1"]).pfc.lossless == 0b1000);
  for (const char* const name : {"leaf1", "leaf2", "spine0"}) {
    const SwitchSettings& old = s.of_node(nodes[name]);
    CHECK(old.buffer_bytes == 2'000'000);
    CHECK_FALSE(old.ecn->on);
    CHECK(old.pfc.lossless == 0);
    CHECK(old.scheduling.strict == 0x80);
    CHECK(old.paths.by == PathBy::flow);
  }
  const SwitchSettings& edge = s.of_node(nodes["leaf0"]);
  CHECK(edge.ecn->kmin_bytes == 5000);
  CHECK(edge.ecn->kmax_bytes == 20'000);
  CHECK(edge.ecn->on);
  CHECK(edge.trim->keep_bytes == 80);
  CHECK(edge.paths.by == PathBy::packet);
  CHECK(edge.pfc.lossless == 0b1000);
}

TEST_CASE("what is wrong with switches of their own") {
  const std::pair<const char*, const char*> kCases[] = {
      {"[switches]\nnames = [\"s0\"]\n",
       "[switches] names: switches with settings of their own have a name"},
      {"[switches.a]\necn.kmin = \"1kb\"\n", "[switches.a] names: it is missing (as in names"},
      {"[switches.a]\nnames = [\"s1\"]\n",
       "[switches.a] names: there is no switch 's1'; the first is 's0'"},
      {"[switches.a]\nnames = [\"h0\"]\n", "[switches.a] names: there is no switch 'h0'"},
      {"[switches.a]\nnames = [\"s0\", \"s0\"]\n", "[switches.a] names: 's0' is there twice"},
      {"[switches.a]\nnames = [\"s0\"]\n[switches.b]\nnames = [\"s0..s0\"]\n",
       "[switches.b] names: 's0' is there twice, here or in another group"},
      {"[switches.a]\nbuffer = \"1mb\"\n",
       "[switches.a] buffer: there is no such key; there is names, and [switches.a.SECTION] with"},
      {"[switches.a.links]\nrate = \"1gbit\"\n",
       "[switches.a] links: switches have no such section of their own; they have switch, ecn"},
      {"[switches.a.priorities]\nby = \"pcp\"\n",
       "[switches.a.priorities] by: it is the same in the whole network: [priorities]"},
      {"[switches.a]\nnames = [\"s0\"]\necn.kmin = \"1\"\n",
       "[switches.a.ecn] kmin: '1' has no unit; write a size"},
      {"[switches.a]\nnames = [\"s0\"]\necn.colour = \"red\"\n",
       "[switches.a.ecn] colour: there is no such key; there are kmin, kmax, pmax, at_rate, use"},
      {"[switches.a]\nnames = [\"s0\"]\necn.kmin = \"1kb\"\n",
       "[ecn] kmin: of 's0': it is more than kmax"},
      {"[switches.a]\nnames = [\"s0\"]\npfc.priorities = [3]\nswitch.buffer = \"50kb\"\n",
       "[switch] buffer: 50kb is not more than the headroom of the ports of 's0'"},
  };
  for (const auto& [text, error] : kCases) {
    INFO(text);
    const std::string found = error_of(kStar + text);
    INFO(found);
    CHECK(found.starts_with(std::string("n.toml: ") + error));
  }
}

TEST_CASE("nodes and links by name") {
  const Description network = read(R"([topology]
kind = "list"
host_names = ["alice", "bob"]
switch_names = ["tor", "core"]
links = ["alice tor", "tor core rate=10gbit", "core bob delay=5us loss=1%"]
[links]
rate = "1gbit"
)");
  REQUIRE(network.topology.links.size() == 3);
  CHECK(network.topology.links[0].settings == LinkSettings{1'000'000'000, 1000, 0});
  CHECK(network.topology.links[1].settings == LinkSettings{10'000'000'000, 1000, 0});
  CHECK(network.topology.links[2].settings == LinkSettings{1'000'000'000, 5000, 10'000});
}

TEST_CASE("errors name file, key, and what is allowed") {
  CHECK(error_of("") ==
        "n.toml: [topology] kind: it is missing; write pair, dumbbell, star, leaf-spine, fat-tree, "
        "list or file");
  CHECK(error_of("[topology]\nkind = \"ring\"") ==
        "n.toml: [topology] kind: 'ring' is none of pair, dumbbell, star, leaf-spine, fat-tree, "
        "list, file (as in kind = \"leaf-spine\")");
  CHECK(error_of("[topology]\nkind = \"dumbbell\"\nleft = 1") ==
        "n.toml: [topology] right: it is missing, and a dumbbell needs it");
  CHECK(error_of(kStar + "spines = 3") ==
        "n.toml: [topology] spines: a star has none; it has hosts");
  CHECK(error_of("[topology]\nkind = \"fat-tree\"\nk = 5") ==
        "n.toml: [topology] k: 5 is no even number from 2 to 128");
  CHECK(error_of("[topology]\nkind = \"star\"\nhosts = 0") ==
        "n.toml: [topology] hosts: '0' is no whole number from 1 to 65536 (as in hosts = 8)");
  CHECK(error_of(kStar + "[links]\nrate = 100") ==
        "n.toml: [links] rate: '100' has no unit; write a rate with bit, kbit, mbit or gbit, like "
        "10gbit (as in rate = \"100gbit\")");
  CHECK(error_of(kStar + "[switch]\ncolour = 1") ==
        "n.toml: [switch] colour: there is no such key; there are buffer, alpha, queue_limit, "
        "telemetry");
  CHECK(error_of(kStar + "[swatch]\nbuffer = 1")
            .starts_with("n.toml: swatch: there is no such section; there are topology, links, "));
  CHECK(error_of("speed = 1\n" + kStar) ==
        "n.toml: speed: there is no such key; there are seed, overhead, reroute, failures");
  CHECK(error_of(kStar + "[priorities]\nweights = [1, 2]") ==
        "n.toml: [priorities] weights: there are 2 weights; 8 are wanted, priority 0's first (as "
        "in weights = [1, 1, 1, 4, 1, 1, 1, 1])");
  CHECK(error_of(kStar + "[pfc]\npriorities = [8]") ==
        "n.toml: [pfc] priorities: '8' is no whole number from 0 to 7 (as in priorities = [3])");
  CHECK(error_of(kStar + "[ecn]\nkmin = \"2kb\"\nkmax = \"1kb\"") ==
        "n.toml: [ecn] kmin: it is more than kmax; at most that is possible");
  CHECK(error_of(kStar + "[pfc]\npriorities = [0]\n[switch]\nbuffer = \"50kb\"") ==
        "n.toml: [switch] buffer: 50kb is not more than the headroom of the ports of 's0'; more of "
        "it, or less of [pfc] headroom, is wanted");
  CHECK(error_of(kStar + "[pfc]\nxoff = \"5kb\"\nxon = \"5kb\"") ==
        "n.toml: [pfc] xon: it is not less than xoff");
  CHECK(error_of("failures = [\"h0 h1 down 1s up 2s\"]\n" + kStar) ==
        "n.toml: failures: 'h0 h1 down 1s up 2s': there is no link between 'h0' and 'h1' (as in "
        "\"leaf0 spine1 down 1ms up 5ms every 100ms\")");
  CHECK(error_of("failures = [\"h0 s0 down 2s up 2s\"]\n" + kStar)
            .find("it comes back before it goes") != std::string::npos);
  CHECK(error_of("seed = 1\nseed = 2\n" + kStar) ==
        "n.toml: seed: one value is wanted, and once (as in seed = 7)");
  const std::string list =
      "[topology]\nkind = \"list\"\nhost_names = [\"a\", \"b\"]\nswitch_names = [\"s\"]\n";
  CHECK(error_of(list + "links = [\"a s\", \"b t\"]") ==
        "n.toml: [topology] links: 'b t': there is no node 't'; host_names and switch_names say "
        "which there are");
  CHECK(error_of(list + "links = [\"a s\", \"a b\"]") ==
        "n.toml: [topology] links: host 'a' has 2 links; a host has one");
  CHECK(error_of(list + "links = [\"a s fast\", \"b s\"]")
            .find("'fast' is none of rate=, delay=, loss=") != std::string::npos);
  CHECK(read_description("/nowhere/n.toml").error == "/nowhere/n.toml: it cannot be read");
}

TEST_CASE("texts of simulators: nodes, switches and links by number") {
  const ParsedTopology parsed = parse_ns3_topology(
      "4 1 3\n3\n0 3 100Gbps 1000ns 0.000000\n1 3 40Gbps 0.001ms 0\n2 3 25Gbps 1us 0.01\n\n");
  REQUIRE(parsed.topology);
  CHECK(parsed.topology->hosts() == std::vector<uint32_t>{0, 1, 2});
  CHECK(parsed.topology->nodes[3].is_switch);
  REQUIRE(parsed.topology->links.size() == 3);
  CHECK(parsed.topology->links[0].settings == LinkSettings{100'000'000'000, 1000, 0});
  CHECK(parsed.topology->links[1].settings == LinkSettings{40'000'000'000, 1000, 0});
  CHECK(parsed.topology->links[2].settings == LinkSettings{25'000'000'000, 1000, 10'000});
}

TEST_CASE("texts of simulators: errors name the line") {
  const auto error = [](const std::string& text) { return parse_ns3_topology(text).error; };
  CHECK(error("") == "line 1: it ends where the number of nodes should be");
  CHECK(error("2 3 1") == "line 1: '3' is not the number of switches, a number up to 2");
  CHECK(error("3 1 2\n2\n0 2 100Gbps 1us 0\n1 5 100Gbps 1us 0") ==
        "line 4: '5' is not a node, a number up to 2");
  CHECK(error("3 1 2\n2\n0 2 100Gbit 1us 0") ==
        "line 3: '100Gbit' has the unit 'Gbit'; write a rate with bps, Kbps, Mbps or Gbps, like "
        "100Gbps");
  CHECK(error("3 1 2\n2\n0 2 100Gbps 1us 0\n") == "line 4: it ends where a node should be");
  CHECK(error("3 1 1\n2\n0 2 100Gbps 1us 0\n") == "host '1' has 0 links; a host has one");
}

}  // namespace rocemu::network
