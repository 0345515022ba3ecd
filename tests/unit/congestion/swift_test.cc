// Swift against algorithm 1 and section 3.5 of its paper, acknowledgement by acknowledgement.
#include <cmath>

#include "tests/unit/congestion/algorithm_stage.h"

namespace rocemu::congestion {
namespace {

using test::algorithm_of;
using test::shown;

struct Swift {
  explicit Swift(const std::string& more = "") : algorithm(algorithm_of("swift" + more)) {}

  double acknowledge(TimeNs at, double delay_us, uint32_t packets = 1, uint32_t hops = 0) {
    algorithm->on_acknowledged({.now = at,
                                .bytes = packets * uint64_t{1000},
                                .packets = packets,
                                .rtt_ns = static_cast<TimeNs>(delay_us * 1000 + 0.5),
                                .hops_passed = hops});
    return cwnd();
  }
  double cwnd() const { return shown(*algorithm, "cwnd"); }
  double target() const { return shown(*algorithm, "target_delay"); }

  std::unique_ptr<Algorithm> algorithm;
};

const std::string kPlain = ",fs_range=0,hop_scale=0,base_target=50";

}  // namespace

TEST_CASE("Swift's target grows with hops, and as the window gets smaller") {
  // alpha = 100 / (1 / sqrt(0.1) - 1 / sqrt(100)), beta = -alpha / 10.
  const double alpha = 100 / (1 / std::sqrt(0.1) - 0.1);
  const auto at_cwnd = [](const std::string& cwnd) {
    return Swift(",initial_cwnd=" + cwnd).target();
  };
  CHECK(at_cwnd("100") == Approx(20 + 3));
  CHECK(at_cwnd("200") == Approx(20 + 3));  // not below 0
  CHECK(at_cwnd("4") == Approx(20 + 3 + alpha * (0.5 - 0.1)));
  CHECK(at_cwnd("0.1") == Approx(20 + 3 + 100));
  CHECK(at_cwnd("0.05") == Approx(20 + 3 + 100));  // not above fs_range
  Swift swift(",initial_cwnd=100,max_cwnd=100");
  swift.acknowledge(0, 10, 1, 5);
  CHECK(shown(*swift.algorithm, "hops") == 5);
  CHECK(swift.target() == Approx(20 + 5 * 3));
  swift.acknowledge(0, 10, 1, 0);
  CHECK(shown(*swift.algorithm, "hops") == 5);
}

TEST_CASE("Swift below the target: ai packets a window") {
  Swift swift(kPlain + ",initial_cwnd=10,ai=2");
  double cwnd = 10;
  for (const uint32_t packets : {1u, 1u, 4u}) {
    cwnd += 2 * packets / cwnd;
    CHECK(swift.acknowledge(100 * kUs, 49.9, packets) == Approx(cwnd));
  }
  Swift small(kPlain + ",initial_cwnd=0.25");
  CHECK(small.acknowledge(0, 10) == Approx(1.25));  // below 1: ai for each packet
}

TEST_CASE("Swift above the target: by the excess, at most by max_mdf, and once a round trip") {
  Swift swift(kPlain + ",initial_cwnd=100");
  const double first = 100 * (1 - 0.8 * (60.0 - 50) / 60);
  CHECK(swift.acknowledge(1000 * kUs, 60) == Approx(first));
  CHECK(swift.acknowledge(1059 * kUs, 60) == Approx(first));
  CHECK(swift.acknowledge(1060 * kUs, 60) == Approx(first * (1 - 0.8 / 6)));
  // A delay of ten times the target would take 0.72 away.
  CHECK(swift.acknowledge(3000 * kUs, 500) == Approx(first * (1 - 0.8 / 6) / 2));
  // At the target itself there is no excess, and no increase.
  const double cwnd = swift.cwnd();
  CHECK(swift.acknowledge(9000 * kUs, 50) == Approx(cwnd));
}

TEST_CASE("Swift: a loss takes max_mdf, once a round trip; timeouts in a row all") {
  Swift swift(kPlain + ",initial_cwnd=64,retx_reset_threshold=3,min_cwnd=0.5");
  swift.acknowledge(1000 * kUs, 40, 0);
  swift.algorithm->on_loss(1000 * kUs);
  CHECK(swift.cwnd() == Approx(32));
  swift.algorithm->on_loss(1039 * kUs);
  CHECK(swift.cwnd() == Approx(32));
  swift.algorithm->on_timeout(1040 * kUs);
  CHECK(swift.cwnd() == Approx(16));
  swift.algorithm->on_timeout(1041 * kUs);
  CHECK(swift.cwnd() == Approx(16));
  swift.algorithm->on_timeout(1042 * kUs);
  CHECK(swift.cwnd() == 0.5);
  // An acknowledgement begins the row anew.
  swift.acknowledge(2000 * kUs, 10, 1);
  swift.algorithm->on_timeout(3000 * kUs);
  CHECK(swift.cwnd() == Approx(0.75));
}

TEST_CASE("Swift paces below one packet, and only there") {
  Swift swift(kPlain + ",initial_cwnd=1");
  CHECK(swift.algorithm->rate_bps() == kUnlimited);
  CHECK(swift.algorithm->window_bytes() == 1000);
  swift.acknowledge(1000 * kUs, 100);
  CHECK(swift.cwnd() == Approx(0.6));
  // A packet of 8000 bits every 100 us / 0.6.
  CHECK(static_cast<double>(swift.algorithm->rate_bps()) == Approx(8000 / 100e-6 * 0.6));
  swift.acknowledge(1001 * kUs, 10);
  CHECK(swift.algorithm->rate_bps() == kUnlimited);
}

TEST_CASE("Swift keeps between min_cwnd and max_cwnd, and learns nothing without a round trip") {
  Swift swift(kPlain + ",initial_cwnd=3.5,max_cwnd=4,min_cwnd=2");
  for (int i = 0; i < 9; ++i) swift.acknowledge(0, 10);
  CHECK(swift.cwnd() == 4);
  swift.algorithm->on_acknowledged({.now = 0, .bytes = 1000, .packets = 1});
  CHECK(swift.cwnd() == 4);
  for (TimeNs at = 1; at < 9; ++at) swift.acknowledge(at * 1000 * kUs, 500);
  CHECK(swift.cwnd() == 2);
}

}  // namespace rocemu::congestion
