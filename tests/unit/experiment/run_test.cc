#include "emulator/experiment/run.h"

#include <catch2/catch.hpp>

#include "emulator/experiment/results/statistics.h"
#include "emulator/experiment/settings/read_experiment.h"

namespace rocemu::experiment {
namespace {

Outcome run(const std::string& text) {
  const ParsedExperiment parsed = parse_experiment(text, "e.toml");
  INFO(parsed.error);
  REQUIRE(parsed.experiment);
  Run run(*parsed.experiment);
  run.go([](TimeNs, uint64_t) { return false; });
  return run.outcome();
}

uint64_t moved(const Outcome& outcome) {
  uint64_t bytes = 0;
  for (const Flow& flow : outcome.flows) bytes += flow.moved_bytes;
  return bytes;
}

const std::string kStar = R"(duration = "1ms"
[network.topology]
kind = "star"
hosts = 5
[network.links]
rate = "10gbit"
)";

}  // namespace

TEST_CASE("an endless incast fills the receiver's link, evenly, and ends with the duration") {
  const Outcome outcome = run(kStar + "[workload.w]\nkind = \"incast\"\n");
  CHECK(outcome.ended_ns == 1'000'000);
  REQUIRE(outcome.flows.size() == 4);
  for (const Flow& flow : outcome.flows) CHECK(flow.state == FlowState::open);
  // 1024 bytes of 1082 are payload.
  CHECK(bits_per_s(moved(outcome), outcome.ended_ns) > 9'300'000'000);
  CHECK(bits_per_s(moved(outcome), outcome.ended_ns) < 9'464'000'000);
  CHECK_FALSE(outcome.series.rates.empty());
  CHECK_FALSE(outcome.series.queues.empty());
}

TEST_CASE("what is lost is sent again, and all flows end") {
  const Outcome outcome = run(R"(duration = "1ms"
[network.topology]
kind = "star"
hosts = 5
[network.links]
loss = "1%"
[workload.w]
kind = "all-to-all"
size = "100kb"
)");
  for (const Flow& flow : outcome.flows) CHECK(flow.state == FlowState::completed);
  CHECK(moved(outcome) == 20 * 100'000);
  CHECK(outcome.nics[transport::TraceEvent::retransmitted] > 0);
}

TEST_CASE("what is sent again is moved once, whatever carries it and whenever one looks") {
  for (const std::string verb : {"write", "write_imm", "send", "read"}) {
    for (const std::string recovery : {"go-back-n", "selective-repeat"}) {
      CAPTURE(verb, recovery);
      const Outcome outcome = run(R"(duration = "1ms"
[network.topology]
kind = "pair"
[network.links]
loss = "5%"
[nic]
timeout = 1
recovery = ")" + recovery + R"("
[results]
warmup = "100us"
[workload.w]
kind = "incast"
size = "1mb"
flows = 3
verb = ")" + verb + "\"\n");
      REQUIRE(outcome.flows.size() == 3);
      CHECK(outcome.nics[transport::TraceEvent::retransmitted] > 0);
      for (const Flow& flow : outcome.flows) {
        CHECK(flow.state == FlowState::completed);
        CHECK(flow.moved_bytes == flow.bytes);
        CHECK(flow.warm_bytes > 0);
        CHECK(flow.warm_bytes < flow.moved_bytes);
      }
    }
  }
}

TEST_CASE("what the NIC throws away is not moved, in flows without a size either") {
  const std::string lossy = R"(duration = "5ms"
[network.topology]
kind = "pair"
[network.links]
rate = "10gbit"
delay = "10us"
loss = "5%"
[workload.w]
kind = "incast"
)";
  const auto rate_of = [](const Outcome& outcome) {
    return bits_per_s(moved(outcome), outcome.ended_ns);
  };
  const uint64_t endless = rate_of(run(lossy));
  const uint64_t sized = rate_of(run(lossy + "size = \"1mb\"\n"));
  CHECK(endless < sized * 3 / 2);
  CHECK(endless > sized / 2);
  CHECK(endless < 6'000'000'000);
}

TEST_CASE("a flow whose packets all are lost fails") {
  for (const std::string connections : {"flow", "pair"}) {
    const Outcome outcome = run(R"(duration = "1ms"
drain = "10s"
[network.topology]
kind = "pair"
[network.links]
loss = "100%"
[nic]
timeout = 1
retry_count = 2
connections = ")" + connections +
                                R"("
[workload.w]
kind = "incast"
size = "10kb"
)");
    REQUIRE(outcome.flows.size() == 1);
    CHECK(outcome.flows[0].state == FlowState::failed);
    CHECK(outcome.flows[0].moved_bytes == 0);
    CHECK(outcome.ended_ns < 1'000'000);
  }
}

TEST_CASE("a frame that a switch has cut is dropped by the NIC's port") {
  const Outcome outcome = run(kStar + R"([network.switch]
buffer = "50kb"
[network.trimming]
keep = "64b"
[workload.w]
kind = "incast"
size = "200kb"
)");
  CHECK(outcome.cut_frames > 0);
  for (const Flow& flow : outcome.flows) CHECK(flow.state == FlowState::completed);
}

TEST_CASE("pauses keep a lossless network from losing anything") {
  const Outcome outcome = run(kStar + R"([network.switch]
buffer = "500kb"
[network.pfc]
priorities = [0]
xoff = "20kb"
xon = "10kb"
headroom = "20kb"
[workload.w]
kind = "incast"
size = "500kb"
)");
  uint64_t pauses = 0;
  for (const network::PortReport& port : outcome.ports) {
    pauses += port.counters.pauses_sent;
    for (const uint64_t lost : port.counters.lost) CHECK(lost == 0);
  }
  CHECK(pauses > 0);
  CHECK_FALSE(outcome.series.pauses.empty());
  CHECK(outcome.nics[transport::TraceEvent::retransmitted] == 0);
}

TEST_CASE("flows of a pair go one after the other over one connection") {
  const Outcome outcome = run(R"(duration = "1ms"
[network.topology]
kind = "pair"
[nic]
connections = "pair"
[workload.w]
kind = "incast"
size = "100kb"
flows = 3
)");
  REQUIRE(outcome.flows.size() == 3);
  CHECK(outcome.flows[0].connection == outcome.flows[2].connection);
  CHECK(outcome.flows[0].end_ns < outcome.flows[1].end_ns);
  CHECK(outcome.flows[1].end_ns < outcome.flows[2].end_ns);
}

TEST_CASE("who asks for the end gets what there is") {
  const ParsedExperiment parsed = parse_experiment(
      "duration = \"1s\"\n[network.topology]\nkind = \"pair\"\n[workload.w]\nkind = \"incast\"\n",
      "e.toml");
  REQUIRE(parsed.experiment);
  Run run(*parsed.experiment);
  run.go([](TimeNs now, uint64_t) { return now > 100'000; });
  const Outcome outcome = run.outcome();
  CHECK(outcome.partial);
  CHECK(outcome.ended_ns < 1'000'000);
  CHECK(outcome.flows[0].moved_bytes > 500'000);
}

TEST_CASE("too many flows for a NIC") {
  const ParsedExperiment parsed =
      parse_experiment(kStar + "[nic]\nmax_qps = 3\n[workload.w]\nkind = \"incast\"\n", "e.toml");
  REQUIRE(parsed.experiment);
  Run run(*parsed.experiment);
  CHECK_THROWS_WITH(run.go([](TimeNs, uint64_t) { return false; }),
                    "host 0 has 3 QPs, and none for another flow ([nic] max_qps)");
}

TEST_CASE("an allreduce ends at all hosts") {
  for (const std::string kind : {"ring", "tree"}) {
    const Outcome outcome =
        run(kStar + "[workload.w]\nkind = \"" + kind + "-allreduce\"\nsize = \"1mb\"\n");
    for (const Flow& flow : outcome.flows) CHECK(flow.state == FlowState::completed);
    CHECK(outcome.flows.size() == (kind == "ring" ? 40 : 8));
    // What flows that share a connection move is seen while they do.
    for (const RateSample& sample : outcome.series.rates) CHECK(sample.moved_bytes < 5'000);
  }
}

TEST_CASE("a flow of several posts is received once") {
  const Outcome outcome = run(R"(duration = "1ms"
drain = "10s"
[network.topology]
kind = "pair"
[network.links]
rate = "400gbit"
[nic]
path_mtu = 4096
[workload.w]
kind = "tree-allreduce"
chunks = 1
size = "1100mb"
)");
  CHECK(outcome.flows.size() == 2);
  for (const Flow& flow : outcome.flows) CHECK(flow.moved_bytes == 1'100'000'000);
}

TEST_CASE("NICs with different settings meet") {
  // Two hosts obey CNPs, two do not, and these have most of the link.
  const Outcome uneven = run(R"(duration = "5ms"
[network.topology]
kind = "star"
hosts = 5
[network.links]
rate = "10gbit"
[network.ecn]
kmin = "20kb"
kmax = "60kb"
[nic]
congestion = "dcqcn:paper"
[nic.greedy]
hosts = ["h3..h4"]
congestion = "none"
path_mtu = 4096
recovery = "selective-repeat"
[workload.w]
kind = "incast"
)");
  REQUIRE(uneven.flows.size() == 4);
  for (const Flow& flow : uneven.flows) {
    const bool greedy = flow.from >= 3;
    CHECK((flow.moved_bytes > 2'000'000) == greedy);
    CHECK(flow.moved_bytes > 0);
  }
}

TEST_CASE("a connection has the smaller path MTU of its ends, either way") {
  for (const char* const from : {"h0", "h1"}) {
    const Outcome outcome = run(R"(duration = "1ms"
[network.topology]
kind = "pair"
[nic.small]
hosts = ["h1"]
path_mtu = 256
max_rd_atomic = 1
[workload.w]
kind = "incast"
size = "256kb"
verb = "read"
to = ")" + std::string(from) + "\"\n");
    REQUIRE(outcome.flows.size() == 1);
    CHECK(outcome.flows[0].state == FlowState::completed);
    CHECK(outcome.frames_delivered > 1000);
  }
}

}  // namespace rocemu::experiment
