#include <catch2/catch.hpp>
#include <string>

#include "emulator/experiment/settings/read_experiment.h"

namespace rocemu::experiment {
namespace {

const std::string kStar = R"(duration = "1ms"
[network.topology]
kind = "star"
hosts = 5
)";

Experiment read(const std::string& text, const std::vector<Override>& overrides = {}) {
  ParsedExperiment parsed = parse_experiment(text, "dir/e.toml", overrides);
  INFO(parsed.error);
  REQUIRE(parsed.experiment);
  return std::move(*parsed.experiment);
}

std::string error_of(const std::string& text) {
  const ParsedExperiment parsed = parse_experiment(text, "e.toml");
  CHECK_FALSE(parsed.experiment);
  return parsed.error;
}

}  // namespace

TEST_CASE("an experiment with everything") {
  const Experiment experiment = read(R"(
name = "all"
seed = 7
duration = "10ms"
drain = "1ms"

[network]
seed = 3
[network.topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[network.links]
rate = "40gbit"

[nic]
path_mtu = 4096
timeout = 12
retry_count = 3
window_packets = 64
dscp = 26
connections = "pair"
recovery = "go-back-n"

[workload.background]
kind = "poisson"
load = "50%"
sizes = "websearch"
hosts = ["h0..h3", "h7"]

[workload.burst]
kind = "incast"
to = "h2"
senders = 3
size = "64kb"
every = "1ms"
rounds = 4
at = "100us"

[results]
interval = "20us"
ports = ["leaf0 h2", "spine1 leaf0"]
plots = false
)");
  CHECK(experiment.name == "all");
  CHECK(experiment.seed == 7);
  CHECK(experiment.duration_ns == 10'000'000);
  CHECK(experiment.drain_ns == 1'000'000);
  CHECK(experiment.network.settings.seed == 3);
  CHECK(experiment.network.topology.links[0].settings.rate_bits_per_s == 40'000'000'000);
  CHECK(experiment.nics.usual.path_mtu_bytes == 4096);
  CHECK(experiment.nics.usual.limits.window_packets == 64);
  CHECK(experiment.nics.usual.connections == Connections::per_pair);
  REQUIRE(experiment.workloads.size() == 2);
  const WorkloadSettings& background = experiment.workloads[0];
  CHECK(background.hosts == std::vector<uint32_t>{0, 1, 2, 3, 7});
  CHECK(background.load_ppm == 500'000);
  CHECK(background.until_ns == 10'000'000);
  const WorkloadSettings& burst = experiment.workloads[1];
  CHECK(burst.hosts == std::vector<uint32_t>{0, 1, 3});
  CHECK(burst.to == 2);
  CHECK(burst.rounds == 4);
  CHECK(experiment.results.ports.size() == 2);
  CHECK(experiment.results.interval_ns == 20'000);
  CHECK_FALSE(experiment.results.plots);
}

TEST_CASE("what an experiment does not say") {
  const Experiment experiment = read(kStar + "[workload.w]\nkind = \"incast\"\n");
  CHECK(experiment.name == "e");
  CHECK(experiment.drain_ns == 10 * experiment.duration_ns);
  CHECK(experiment.results.interval_ns == 2000);
  CHECK(experiment.workloads[0].hosts == std::vector<uint32_t>{1, 2, 3, 4});
  CHECK(experiment.workloads[0].bytes == 0);
}

TEST_CASE("congestion control is chosen as in the NIC's configuration file") {
  const std::string incast = "[workload.w]\nkind = \"incast\"\n";
  const Experiment experiment =
      read(kStar + "[congestion]\nrpg_ai_rate = 7\nalgorithm = \"dcqcn:paper\"\n" + incast);
  const congestion::Settings& settings = experiment.nics.usual.limits.congestion;
  CHECK(settings.name() == "dcqcn");
  CHECK(settings.preset == "paper");
  bool found = false;
  for (const congestion::NamedValue& value : settings.parameters())
    found |= value.name == "rpg_ai_rate" && value.value == 7;
  CHECK(found);
  CHECK_THAT(
      error_of(kStar +
               "[nic]\ncongestion = \"dcqcn\"\n[congestion]\n"
               "algorithm = \"dcqcn\"\n" +
               incast),
      Catch::StartsWith("e.toml: [congestion] algorithm: there are congestion of [nic] and"));
}

TEST_CASE("NICs that are not like the others") {
  const Experiment experiment = read(kStar + R"(
[nic.old]
hosts = ["h1..h2", "h4"]
congestion = "none"
path_mtu = 512
dscp = 8
[nic.spare]
hosts = ["h0"]
recovery = "selective-repeat"
[nic]
path_mtu = 2048
[congestion]
algorithm = "dcqcn:paper"
rpg_ai_rate = 7
[workload.w]
kind = "incast"
)");
  const Nics& nics = experiment.nics;
  CHECK(nics.others.size() == 4);
  CHECK(nics.of(3).limits.congestion.name() == "dcqcn");
  CHECK(nics.of(2).limits.congestion.name() == "adaptive_window");
  CHECK(nics.of(2).dscp == 8);
  CHECK(nics.of(0).dscp == 0);
  CHECK(nics.of(0).limits.recovery == transport::Recovery::selective_repeat);
  CHECK(nics.of(0).limits.congestion.name() == "dcqcn");
  CHECK(nics.of(0).limits.congestion.preset == "paper");
  CHECK(nics.path_mtu_bytes(0, 3) == 2048);
  CHECK(nics.path_mtu_bytes(0, 4) == 512);
  CHECK(nics.path_mtu_bytes(4, 3) == 512);
}

TEST_CASE("what is wrong with NICs of their own") {
  const std::pair<const char*, const char*> kCases[] = {
      {"dscp = 8\n", "[nic.a] hosts: it is missing (as in hosts = "},
      {"hosts = [\"h9\"]\n", "[nic.a] hosts: there is no host 'h9'; there are 5"},
      {"hosts = [\"h3..h1\"]\n", "[nic.a] hosts: 'h3..h1': the second comes before the first"},
      {"hosts = [\"h1\", \"h1\"]\n", "[nic.a] hosts: 'h1' is there twice"},
      {"hosts = [\"h1\"]\n[nic.b]\nhosts = [\"h0..h2\"]\n",
       "[nic.b] hosts: host 1 is in another group as well"},
      {"hosts = [\"h1\"]\npath_mtu = 1500\n",
       "[nic.a] path_mtu: '1500' is none of 256, 512, 1024, 2048, 4096"},
      {"hosts = [\"h1\"]\nspeed = 1\n",
       "[nic.a] speed: there is no such key; there are path_mtu, timeout"},
      {"hosts = [\"h1\"]\nconnections = \"pair\"\n",
       "[nic.a] connections: it is the same for all NICs: [nic]"},
      {"hosts = [\"h1\"]\ncongestion = \"dcqcn:fast\"\n", "[nic.a] congestion: "},
  };
  for (const auto& [text, error] : kCases) {
    INFO(text);
    const std::string found = error_of(kStar + "[workload.w]\nkind = \"incast\"\n[nic.a]\n" + text);
    INFO(found);
    CHECK(found.starts_with(std::string("e.toml: ") + error));
  }
}

TEST_CASE("a key is given another value") {
  const ParsedOverride load = parse_override("workload.w.load=30%");
  const ParsedOverride seed = parse_override("seed=9");
  REQUIRE(load.value);
  REQUIRE(seed.value);
  const Experiment experiment =
      read(kStar + "[workload.w]\nkind = \"poisson\"\nsizes = \"fbhdp\"\nload = \"50%\"\n",
           {*load.value, *seed.value});
  CHECK(experiment.workloads[0].load_ppm == 300'000);
  CHECK(experiment.seed == 9);
  CHECK_FALSE(parse_override("load").value);
  CHECK_FALSE(parse_override("=3").value);
}

TEST_CASE("what is wrong with an experiment") {
  const std::string incast = "[workload.w]\nkind = \"incast\"\n";
  const std::pair<std::string, std::string> kCases[] = {
      {"duration = 5\n",
       "e.toml: duration: '5' has no unit; write a time with ns, us, ms or s, "
       "like 20us (as in duration = \"10ms\")"},
      {"speed = 5\n", "e.toml: speed: there is no such key"},
      {"[neck]\na = 1\n",
       "e.toml: neck: there is no such section; there are network, nic, "
       "nic.NAME, congestion, workload.NAME, results"},
      {incast, "e.toml: duration: it is missing (as in duration = \"10ms\")"},
      {"duration = \"1ms\"\n" + incast, "e.toml: network: it is missing; write network = \"FILE\""},
      {"duration = \"1ms\"\nnetwork = \"none.toml\"\n" + incast,
       "e.toml: network: none.toml: it cannot be read"},
      {"duration = \"1ms\"\n[network.links]\nrate = \"100\"\n" + incast,
       "e.toml: [network.links] rate: '100' has no unit"},
      {"duration = \"1ms\"\n[network.topology]\nkind = \"ring\"\n" + incast,
       "e.toml: [network.topology] kind: 'ring' is none of pair, dumbbell"},
      {kStar, "e.toml: workload: there is none; begin one with [workload.NAME]"},
      {kStar + "[workload]\nkind = \"incast\"\n",
       "e.toml: [workload] kind: a workload has a name of one word"},
      {kStar + "[workload.w]\nsize = \"1mb\"\n", "e.toml: [workload.w] kind: it is missing; write"},
      {kStar + incast + "load = \"5%\"\n",
       "e.toml: [workload.w] load: incast has no such key; it has kind, hosts, to, senders, verb, "
       "flows, size, at, until, every, rounds"},
      {kStar + incast + "to = \"h9\"\n",
       "e.toml: [workload.w] to: there is no host 'h9'; there are 5, the first is 'h0'"},
      {kStar + incast + "senders = 5\n", "e.toml: [workload.w] senders: '5' is no whole number"},
      {kStar + incast + "every = \"1us\"\n",
       "e.toml: [workload.w] every: flows without a size have no end"},
      {kStar + "[workload.w]\nkind = \"poisson\"\nload = \"50%\"\n",
       "e.toml: [workload.w] sizes: it is missing"},
      {kStar + "[workload.w]\nkind = \"poisson\"\nload = \"50%\"\nsizes = \"search\"\n",
       "e.toml: [workload.w] sizes: 'search' is none of websearch, fbhdp, alistorage, nor a file"},
      {kStar + "[workload.w]\nkind = \"trace\"\nfile = \"none.txt\"\n",
       "e.toml: [workload.w] file: 'none.txt' cannot be read"},
      {kStar + incast + "[nic]\npath_mtu = 1500\n",
       "e.toml: [nic] path_mtu: '1500' is none of 256, 512, 1024, 2048, 4096"},
      {kStar + incast + "[results]\nports = [\"h0 h1\"]\n",
       "e.toml: [results] ports: 'h0 h1' is no link from one node to another"},
      {"duration = \n]", "e.toml: duration: one value is wanted"},
  };
  for (const auto& [text, error] : kCases) {
    INFO(text);
    const std::string found = error_of(text);
    INFO(found);
    CHECK(found.starts_with(error));
  }
}

TEST_CASE("tables of sizes") {
  for (const std::string_view name : {"websearch", "fbhdp", "alistorage"}) {
    const ParsedSizes parsed = parse_sizes(published_sizes(name));
    CHECK(parsed.error.empty());
    CHECK_FALSE(parsed.sizes.empty());
  }
  CHECK(parse_sizes(published_sizes("websearch")).sizes.mean_bytes() == 1'711'250);
  CHECK(parse_sizes("1kb 50%\n2kb 90%").error == "the last share is not 100%");
  CHECK(parse_sizes("2kb 50%\n1kb 100%").error == "sizes do not grow");
  CHECK(parse_sizes("# nothing\n").error == "two sizes at least make a distribution");
  CHECK(parse_sizes("1kb 50\n2kb 100%").error.starts_with("line 1: '50' has no unit"));
  CHECK(parse_sizes("1kb 50% x\n").error.starts_with("line 1: 'x' is too much"));
}

}  // namespace rocemu::experiment
