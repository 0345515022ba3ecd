// HPCC against algorithm 1 of its paper, acknowledgement by acknowledgement. T is 10 us and the
// line 100 Gbit/s: the first window is 125,000 bytes.
#include <vector>

#include "tests/unit/congestion/algorithm_stage.h"

namespace rocemu::congestion {
namespace {

using test::algorithm_of;
using test::shown;

constexpr uint64_t kGbps = 1'000'000'000;
constexpr double kFirst = 125'000;

struct Hpcc {
  explicit Hpcc(const std::string& more = "")
      : algorithm(algorithm_of("hpcc,base_rtt=10,w_ai=80,eta=0.95,max_stage=5" + more)) {}

  // An acknowledgement of `bytes`, with so many left in flight.
  double acknowledge(uint64_t bytes, uint64_t in_flight, const std::vector<HopTelemetry>& hops,
                     uint32_t path = 1) {
    algorithm->on_acknowledged({.now = now += kUs,
                                .bytes = bytes,
                                .packets = 1,
                                .in_flight_bytes = in_flight,
                                .hops = hops,
                                .path = path});
    return window();
  }
  double window() const { return shown(*algorithm, "window"); }
  double u() const { return shown(*algorithm, "u"); }
  double stage() const { return shown(*algorithm, "inc_stage"); }

  TimeNs now = 0;
  std::unique_ptr<Algorithm> algorithm;
};

HopTelemetry hop(uint64_t at_ns, uint64_t sent, uint64_t queue, uint64_t rate = 100 * kGbps) {
  return {.queue_bytes = queue, .tx_bytes = sent, .timestamp_ns = at_ns, .link_rate_bps = rate};
}

}  // namespace

TEST_CASE("HPCC begins with a line rate's worth of T, paced, and notes the first telemetry") {
  Hpcc hpcc;
  CHECK(hpcc.algorithm->window_bytes() == 125'000);
  CHECK(hpcc.algorithm->rate_bps() == 100 * kGbps);
  CHECK(hpcc.acknowledge(1000, 124'000, {hop(0, 0, 50'000)}) == kFirst);
  CHECK(hpcc.u() == 1);
  CHECK(shown(*hpcc.algorithm, "telemetry_hops") == 1);
}

TEST_CASE("HPCC: U is what the port sends and what waits there, smoothed over T") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 124'000, {hop(0, 0, 50'000)});
  // In 5 us 62,500 bytes: all that the port can. The lesser queue is 25,000 of 125,000.
  const double window = hpcc.acknowledge(1000, 124'000, {hop(5000, 62'500, 25'000)});
  const double u = 0.5 * 1 + 0.5 * (1 + 0.2);
  CHECK(hpcc.u() == Approx(u));
  CHECK(window == Approx(kFirst * 0.95 / u + 80));
  CHECK(hpcc.algorithm->rate_bps() == Approx(window * 8 / 10e-6));
  // More than T counts as T.
  hpcc.acknowledge(1000, 124'000, {hop(45'000, 62'500, 0)});
  CHECK(hpcc.u() == 0);
}

TEST_CASE("HPCC: the busiest hop counts, and its own time") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 124'000, {hop(0, 0, 0), hop(100, 0, 0, 400 * kGbps)});
  hpcc.acknowledge(1000, 124'000, {hop(5000, 31'250, 0), hop(2100, 80'000, 0, 400 * kGbps)});
  CHECK(hpcc.u() == Approx(0.8 * 1 + 0.2 * 0.8));
}

TEST_CASE("HPCC: between the reference's changes, windows follow from the same reference") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 100'000, {hop(0, 0, 0)});  // the round ends when 101,000 have been
  uint64_t at = 0;
  uint64_t sent = 0;
  // Ports at twice eta, whatever is sent: the window is halved again and again, from the first one.
  for (int i = 0; i < 100; ++i) {
    hpcc.acknowledge(1000, 100'000, {hop(at += 10'000, sent += 125'000 * 19 / 10, 0)});
    CHECK(hpcc.u() == Approx(1.9));
    CHECK(hpcc.window() == Approx(kFirst / 2 + 80));
  }
  // This one is of what was sent after the first: the window becomes the reference …
  hpcc.acknowledge(1000, 50'000, {hop(at += 10'000, sent += 237'500, 0)});
  CHECK(hpcc.window() == Approx(kFirst / 2 + 80));
  // … from which the next ones follow.
  hpcc.acknowledge(1000, 50'000, {hop(at += 10'000, sent += 237'500, 0)});
  CHECK(hpcc.window() == Approx((kFirst / 2 + 80) / 2 + 80));
}

TEST_CASE("HPCC: max_stage additive increases, and then a multiplicative one") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 0, {hop(0, 0, 0)});
  uint64_t at = 0;
  uint64_t sent = 0;
  const auto next = [&](uint64_t bytes) {
    return hpcc.acknowledge(1000, 0, {hop(at += 10'000, sent += bytes, 0)});
  };
  double window = kFirst / 4 + 80;
  CHECK(next(125'000 * 38 / 10) == Approx(window));  // U = 3.8: four times eta
  CHECK(hpcc.stage() == 0);
  for (int stage = 1; stage <= 5; ++stage) {
    CHECK(next(62'500) == Approx(window += 80));
    CHECK(hpcc.stage() == stage);
  }
  CHECK(next(62'500) == Approx(window * 0.95 / 0.5 + 80));
  CHECK(hpcc.stage() == 0);
}

TEST_CASE("HPCC: the window keeps between w_ai and the first one, whatever telemetry says") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 0, {hop(0, 0, 0)});
  CHECK(hpcc.acknowledge(1000, 0, {hop(1, 4'000'000'000, 4'294'967'295)}) >= 80);
  CHECK(hpcc.window() < 100);
  Hpcc idle(",max_stage=0");
  idle.acknowledge(1000, 0, {hop(0, 0, 0)});
  idle.acknowledge(1000, 0, {hop(10'000, 0, 0)});
  CHECK(idle.window() == kFirst);  // U is 0
}

TEST_CASE("HPCC: counters that begin anew, times that stand still, ports without a rate") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 0, {hop(0xffff'fff0, 0xffff'0000, 0)});
  hpcc.acknowledge(1000, 0, {hop(9'984, 59'464, 0)});  // 10 us and 125,000 bytes later
  CHECK(hpcc.u() == Approx(1));
  hpcc.acknowledge(1000, 0, {hop(9'984, 100'000, 77)});
  CHECK(hpcc.u() == Approx(1));
  hpcc.acknowledge(1000, 0, {hop(9'000, 90'000, 77)});  // overtaken
  CHECK(hpcc.u() == Approx(1));
  hpcc.acknowledge(1000, 0, {hop(50'000, 90'000, 77, 0)});
  CHECK(hpcc.u() == Approx(1));
}

TEST_CASE("HPCC: another path, or a long silence, begins the comparison anew") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 0, {hop(0, 0, 0)});
  hpcc.acknowledge(1000, 0, {hop(1000, 1'000'000, 100'000)}, 2);
  CHECK(hpcc.u() == 1);
  hpcc.acknowledge(1000, 0, {hop(11'000, 1'000'000, 0)}, 2);
  CHECK(hpcc.u() == 0);
  hpcc.now += 3'000'000'000;
  hpcc.acknowledge(1000, 0, {hop(22'000, 9'000'000, 100'000)}, 2);
  CHECK(hpcc.u() == 0);
  hpcc.acknowledge(1000, 0, {hop(1000, 0, 0), hop(1000, 0, 0)}, 2);
  CHECK(hpcc.u() == 0);
}

TEST_CASE("HPCC without telemetry: losses halve the window once in T, and it comes back") {
  Hpcc hpcc;
  hpcc.acknowledge(1000, 0, {});
  CHECK(shown(*hpcc.algorithm, "telemetry_hops") == 0);
  hpcc.algorithm->on_loss(100 * kUs);
  CHECK(hpcc.window() == kFirst / 2);
  hpcc.algorithm->on_loss(109 * kUs);
  CHECK(hpcc.window() == kFirst / 2);
  hpcc.algorithm->on_timeout(110 * kUs);
  CHECK(hpcc.window() == kFirst / 4);
  CHECK(hpcc.acknowledge(31'250, 0, {}) == Approx(kFirst / 4 + 1000));
  // With telemetry, losses are not HPCC's affair.
  hpcc.acknowledge(1000, 0, {hop(0, 0, 0)});
  const double window = hpcc.window();
  hpcc.algorithm->on_loss(900 * kUs);
  CHECK(hpcc.window() == window);
  // Some acknowledgements have none anyway; when all have none for long, this begins again.
  hpcc.acknowledge(1000, 0, {});
  CHECK(hpcc.window() == window);
  hpcc.now += 640 * kUs;
  hpcc.acknowledge(1000, 0, {});
  hpcc.algorithm->on_loss(2000 * kUs);
  CHECK(hpcc.window() < window * 0.6);
}

}  // namespace rocemu::congestion
