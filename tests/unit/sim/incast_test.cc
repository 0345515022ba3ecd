// Incast of K to 1 under each algorithm: the queue that it promises, goodput, fairness.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tests/unit/sim/incast_stage.h"
#include "tests/unit/time_units.h"

namespace rocemu::incast {
namespace {

struct Result {
  double goodput_gbps = 0;
  double fairness = 0;  // Jain's index
  double queue_mean_bytes = 0;
  double queue_most_bytes = 0;
};

// Between two times; the queue is looked at every microsecond.
Result measure(Stage& stage, uint32_t senders, TimeNs from, TimeNs to) {
  stage.run_until(from);
  std::vector<double> bytes;
  for (uint32_t i = 0; i < senders; ++i)
    bytes.push_back(-static_cast<double>(stage.received_bytes(i)));
  Result result;
  unsigned samples = 0;
  for (TimeNs at = from; at < to; at += kUs, ++samples) {
    stage.run_until(at);
    const auto queue = static_cast<double>(stage.queue_bytes());
    result.queue_mean_bytes += queue;
    result.queue_most_bytes = std::max(result.queue_most_bytes, queue);
  }
  result.queue_mean_bytes /= samples;
  double squares = 0;
  for (uint32_t i = 0; i < senders; ++i) {
    bytes[i] += static_cast<double>(stage.received_bytes(i));
    squares += bytes[i] * bytes[i];
  }
  const double sum = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  result.goodput_gbps = sum * 8 / static_cast<double>(to - from);
  result.fairness = sum * sum / (senders * squares);
  if (std::getenv("ROCEMU_SHOW_INCAST") != nullptr)
    std::printf("| %u | %.2f | %.3f | %.1f | %.1f |\n", senders, result.goodput_gbps,
                result.fairness, result.queue_mean_bytes / 1000, result.queue_most_bytes / 1000);
  return result;
}

Result incast(const std::string& congestion, uint32_t senders, TimeNs from = 10 * kMs,
              TimeNs to = 20 * kMs) {
  Stage stage({.congestion = congestion, .senders = senders});
  const Result result = measure(stage, senders, from, to);
  CHECK(stage.failed() == 0);
  CHECK(stage.lost() == 0);
  return result;
}

}  // namespace

// Shortest round trip: four cables of 1 us, a packet on two of them and an ACK. A packet of data
// has 1024 bytes of 1082 without telemetry, of 1174 with HPCC's.

TEST_CASE("Incast under HPCC: next to no queue, and eta of the line") {
  for (const uint32_t senders : {2u, 16u}) {
    const Result result = incast("hpcc,base_rtt=6", senders, 3 * kMs, 5 * kMs);
    CHECK(result.queue_mean_bytes < 4'000);
    CHECK(result.queue_most_bytes < 16'000);
    CHECK(result.goodput_gbps > 0.9 * 25 * 1024 / 1174);
    CHECK(result.goodput_gbps < 0.99 * 25 * 1024 / 1174);
    CHECK(result.fairness > 0.95);
  }
}

TEST_CASE("Incast under Swift: the queue is what the target leaves, and the line is full") {
  for (const uint32_t senders : {2u, 16u}) {
    Stage stage({.congestion = "swift", .senders = senders});
    const Result result = measure(stage, senders, 3 * kMs, 5 * kMs);
    const auto flow = stage.flow_of(0).front();
    const auto value = [&](const char* name) {
      return std::ranges::find(flow.values, name, &congestion::NamedValue::name)->value;
    };
    CHECK(value("hops") == 1);
    const double queue_us = value("target_delay") - 4.8;
    CHECK(result.queue_mean_bytes == Approx(queue_us * 25'000 / 8).epsilon(0.1));
    CHECK(result.goodput_gbps > 0.98 * 25 * 1024 / 1094);
    CHECK(result.fairness > 0.98);
    CHECK(stage.failed() == 0);
    CHECK(stage.lost() == 0);
  }
}

TEST_CASE("Incast under TIMELY: round trips about t_low, once the first collapse is over") {
  const Result result = incast("timely", 16, 12 * kMs, 14 * kMs);
  CHECK(result.queue_mean_bytes < 500 * 25'000 / 8);  // t_high
  CHECK(result.queue_mean_bytes > 10'000);
  CHECK(result.goodput_gbps > 0.8 * 25 * 1024 / 1082);
  CHECK(result.fairness > 0.9);
}

TEST_CASE("HPCC over switches that say nothing goes on by losses alone, and says so") {
  Options options{.congestion = "hpcc,base_rtt=6", .senders = 1};
  options.network.switches.telemetry = false;
  Stage stage(options);
  stage.run_until(1 * kMs);
  const auto flow = stage.flow_of(0).front();
  const auto hops = std::ranges::find(flow.values, "telemetry_hops", &congestion::NamedValue::name);
  CHECK(hops->value == 0);
  CHECK(stage.received_bytes(0) > 1'000'000);
  CHECK(stage.failed() == 0);
}

}  // namespace rocemu::incast
