#include <catch2/catch.hpp>

#include "emulator/experiment/results/ideal_time.h"
#include "emulator/experiment/results/statistics.h"
#include "emulator/experiment/run.h"
#include "network/topology/kinds.h"

namespace rocemu::experiment {

TEST_CASE("percentiles are values that there are") {
  const std::vector<uint64_t> values{10, 20, 30, 40};
  CHECK(percentile(values, 500'000) == 20);
  CHECK(percentile(values, 750'001) == 40);
  CHECK(percentile(values, 1'000'000) == 40);
  CHECK(percentile({5}, 1) == 5);
}

TEST_CASE("Jain's index") {
  CHECK(jains_index_ppm({}) == 0);
  CHECK(jains_index_ppm({0, 0}) == 0);
  CHECK(jains_index_ppm({7, 7, 7}) == 1'000'000);
  CHECK(jains_index_ppm({1, 0, 0, 0}) == 250'000);
  CHECK(jains_index_ppm({1, 2, 3}) == 857'142);
  const std::vector<uint64_t> many(100'000, 400'000'000'000);
  CHECK(jains_index_ppm(many) >= 999'999);
}

TEST_CASE("numbers as text") {
  CHECK(from_thousandths(1) == "0.001");
  CHECK(from_thousandths(12'340) == "12.340");
  CHECK(thousandths(2, 3) == 667);
  CHECK(bits_per_s(125, 1000) == 1'000'000'000);
}

TEST_CASE("one packet takes its cables, and the ACK the way back") {
  network::Description network;
  network.topology = network::star(2, {.rate_bits_per_s = 8'000'000'000, .delay_ns = 1000});
  const Nics nics;
  const IdealTime ideal(network, nics);
  // At a byte in 1 ns: headers of 58 bytes, a RETH of 16, an ACK of 62.
  CHECK(ideal.of(0, 1, 100, Verb::send) == 2 * (158 + 1000) + 2 * (62 + 1000));
  CHECK(ideal.of(0, 1, 100, Verb::write) == 2 * (174 + 1000) + 2 * (62 + 1000));
  // A READ's request, and an answer with an AETH.
  CHECK(ideal.of(0, 1, 101, Verb::read) == 2 * (74 + 1000) + 2 * (62 + 104 + 1000));
}

TEST_CASE("a flow alone takes its ideal time") {
  for (const uint64_t fabric_rate : {10'000'000'000, 40'000'000'000, 100'000'000'000}) {
    for (const Verb verb : {Verb::write, Verb::send, Verb::read, Verb::write_imm}) {
      for (const uint64_t bytes : {1ull, 1024ull, 1025ull, 2048ull, 4000ull, 100'001ull}) {
        Experiment experiment;
        experiment.duration_ns = 1'000'000;
        experiment.drain_ns = 10'000'000;
        experiment.network.topology =
            network::leaf_spine(2, 1, 2,
                                {.host = {.rate_bits_per_s = 40'000'000'000},
                                 .fabric = {.rate_bits_per_s = fabric_rate, .delay_ns = 1500}});
        WorkloadSettings one;
        one.hosts = {3};
        one.bytes = bytes;
        one.verb = verb;
        one.until_ns = 1;
        experiment.workloads = {one};
        Run run(experiment);
        run.go([](TimeNs, uint64_t) { return false; });
        const Outcome outcome = run.outcome();
        REQUIRE(outcome.flows.size() == 1);
        const Flow& flow = outcome.flows[0];
        INFO(fabric_rate << " bit/s " << bytes << " B, verb " << static_cast<int>(verb));
        REQUIRE(flow.state == FlowState::completed);
        CHECK(flow.moved_bytes == bytes);
        const TimeNs ideal =
            IdealTime(experiment.network, experiment.nics).of(flow.from, flow.to, bytes, verb);
        // The network counts whole nanoseconds.
        CHECK(flow.end_ns + 10 > ideal);
        CHECK(flow.end_ns < ideal + 10);
      }
    }
  }
}

}  // namespace rocemu::experiment
