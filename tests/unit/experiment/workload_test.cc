#include "emulator/experiment/workload/workload.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "emulator/experiment/workload/exponential.h"

namespace rocemu::experiment {
namespace {

// Notes what is started, and lets it be over.
class Starter final : public FlowStarter {
 public:
  void start(const FlowSpec& flow) override { flows.push_back(flow); }
  std::vector<FlowSpec> flows;
};

WorkloadSettings settings_of(WorkloadKind kind, uint32_t hosts) {
  WorkloadSettings settings;
  settings.kind = kind;
  settings.bytes = 1200;
  settings.until_ns = 1'000'000;
  for (uint32_t host = 0; host < hosts; ++host) settings.hosts.push_back(host);
  return settings;
}

constexpr uint64_t kRate = 100'000'000'000;

// Delivers whatever is started, in order, until nothing is. Returns all of it.
std::vector<FlowSpec> play(Workload& workload) {
  Starter starter;
  TimeNs now = workload.next();
  workload.begin(now, starter);
  for (size_t i = 0; i < starter.flows.size(); ++i) {
    const FlowSpec flow = starter.flows[i];
    workload.on_received(++now, flow.tag, starter);
    workload.on_over(++now, flow.tag, starter);
  }
  return starter.flows;
}

}  // namespace

TEST_CASE("incast: all to one, round after round") {
  WorkloadSettings settings = settings_of(WorkloadKind::incast, 4);
  settings.hosts = {1, 2, 3};
  settings.at_ns = 50;
  settings.every_ns = 1000;
  settings.rounds = 2;
  const auto workload = make_workload(settings, 1, kRate);
  Starter starter;
  CHECK(workload->next() == 50);
  workload->begin(50, starter);
  CHECK(starter.flows.size() == 3);
  for (const FlowSpec& flow : starter.flows) CHECK(flow.to == 0);
  CHECK(workload->next() == 1050);
  workload->begin(1050, starter);
  CHECK(workload->next() == kNever);
}

TEST_CASE("a round begins when the last one is over") {
  WorkloadSettings settings = settings_of(WorkloadKind::incast, 3);
  settings.hosts = {1, 2};
  settings.rounds = 2;
  const auto workload = make_workload(settings, 1, kRate);
  Starter starter;
  workload->begin(0, starter);
  workload->on_over(700, 0, starter);
  CHECK(workload->next() == kNever);
  workload->on_over(800, 0, starter);
  CHECK(workload->next() == 800);
  workload->begin(800, starter);
  workload->on_over(900, 0, starter);
  workload->on_over(900, 0, starter);
  CHECK(workload->next() == kNever);
}

TEST_CASE("a permutation: each sends once, receives once, not to itself") {
  const auto workload = make_workload(settings_of(WorkloadKind::permutation, 50), 7, kRate);
  Starter starter;
  workload->begin(0, starter);
  std::set<uint32_t> from, to;
  for (const FlowSpec& flow : starter.flows) {
    CHECK(flow.from != flow.to);
    from.insert(flow.from);
    to.insert(flow.to);
  }
  CHECK(from.size() == 50);
  CHECK(to.size() == 50);
}

TEST_CASE("all to all: each pair once") {
  const auto workload = make_workload(settings_of(WorkloadKind::all_to_all, 5), 7, kRate);
  Starter starter;
  workload->begin(0, starter);
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const FlowSpec& flow : starter.flows) pairs.insert({flow.from, flow.to});
  CHECK(starter.flows.size() == 20);
  CHECK(pairs.size() == 20);
}

TEST_CASE("ring allreduce: 2 (n - 1) steps of each host, a piece each") {
  const auto workload = make_workload(settings_of(WorkloadKind::ring_allreduce, 4), 7, kRate);
  const std::vector<FlowSpec> flows = play(*workload);
  REQUIRE(flows.size() == 6 * 4);
  std::map<uint32_t, int> sent;
  for (const FlowSpec& flow : flows) {
    CHECK(flow.to == (flow.from + 1) % 4);
    CHECK(flow.bytes == 300);
    CHECK(flow.lasting);
    ++sent[flow.from];
  }
  for (const auto& [host, count] : sent) CHECK(count == 6);
}

TEST_CASE("tree allreduce: all go up before the result comes down") {
  WorkloadSettings settings = settings_of(WorkloadKind::tree_allreduce, 6);
  settings.chunks = 2;
  const auto workload = make_workload(settings, 7, kRate);
  const std::vector<FlowSpec> flows = play(*workload);
  REQUIRE(flows.size() == 2 * 5 * 2);
  int up = 0, down = 0;
  for (const FlowSpec& flow : flows) {
    CHECK(flow.bytes == 600);
    (flow.to < flow.from ? up : down)++;
  }
  CHECK(up == 10);
  CHECK(down == 10);
  // Nothing has come down of a chunk whose sum is not at the root.
  CHECK(flows[flows.size() - 1].from < flows[flows.size() - 1].to);
}

TEST_CASE("tree allreduce: a round that begins before the last one is over adds its own up") {
  WorkloadSettings settings = settings_of(WorkloadKind::tree_allreduce, 7);
  settings.rounds = 2;
  settings.every_ns = 10;
  const auto workload = make_workload(settings, 7, kRate);
  Starter starter;
  workload->begin(0, starter);
  workload->begin(10, starter);
  for (size_t i = 0; i < starter.flows.size(); ++i)
    workload->on_received(20, starter.flows[i].tag, starter);
  CHECK(starter.flows.size() == 2 * 2 * 6);
}

TEST_CASE("rounds: none begins when it is too late for one") {
  WorkloadSettings settings = settings_of(WorkloadKind::incast, 3);
  settings.at_ns = settings.until_ns;
  CHECK(make_workload(settings, 1, kRate)->next() == kNever);
}

TEST_CASE("tree allreduce of two") {
  const auto workload = make_workload(settings_of(WorkloadKind::tree_allreduce, 2), 7, kRate);
  CHECK(play(*workload).size() == 2);
}

TEST_CASE("Poisson arrivals make up the load") {
  WorkloadSettings settings = settings_of(WorkloadKind::poisson, 16);
  settings.load_ppm = 500'000;
  settings.sizes = parse_sizes(published_sizes("fbhdp")).sizes;
  settings.until_ns = 50'000'000;
  const auto workload = make_workload(settings, 3, 16 * kRate);
  Starter starter;
  while (workload->next() != kNever) workload->begin(workload->next(), starter);
  uint64_t bytes = 0;
  for (const FlowSpec& flow : starter.flows) {
    CHECK(flow.from != flow.to);
    bytes += flow.bytes;
  }
  const double load = static_cast<double>(bytes) * 8 / (16.0 * 100e9 * 0.05);
  CHECK(load == Approx(0.5).epsilon(0.03));
}

TEST_CASE("sizes are spread as the table says") {
  const SizeDistribution sizes = parse_sizes("0b 0%\n100b 50%\n1kb 100%").sizes;
  Random random(5);
  uint64_t small = 0, sum = 0;
  constexpr uint64_t kDraws = 100'000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint64_t size = sizes.draw(random);
    CHECK(size >= 1);
    CHECK(size <= 1000);
    small += size <= 100;
    sum += size;
  }
  CHECK(static_cast<double>(small) / kDraws == Approx(0.5).margin(0.01));
  CHECK(static_cast<double>(sum) / kDraws ==
        Approx(static_cast<double>(sizes.mean_bytes())).epsilon(0.01));
}

TEST_CASE("the logarithm of whole numbers") {
  CHECK(minus_log2(uint64_t{1} << 63) == uint64_t{1} << 32);
  CHECK(minus_log2(1) == uint64_t{64} << 32);
  for (const uint64_t x : {uint64_t{3}, uint64_t{12345}, ~uint64_t{0} / 3, ~uint64_t{0}}) {
    const double exact = 64 - std::log2(static_cast<double>(x));
    CHECK(static_cast<double>(minus_log2(x)) / 4294967296.0 == Approx(exact).margin(1e-9));
  }
  Random random(1);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += static_cast<double>(exponential(1000, random));
  CHECK(sum / 100'000 == Approx(1000).epsilon(0.01));
}

}  // namespace rocemu::experiment
