// TIMELY against algorithm 1 of its paper, completion by completion.
#include <cmath>

#include "tests/unit/congestion/algorithm_stage.h"

namespace rocemu::congestion {
namespace {

using test::algorithm_of;
using test::shown;

// Packets of 1000 bytes take 0.8 us at 10 Gbit/s, which is taken off a round trip.
constexpr Flow kFlow{.line_rate_bps = 10'000'000'000, .max_frame_bytes = 1000};
constexpr double kLineMbps = 10'000;

struct Timely {
  explicit Timely(const std::string& more = "")
      : algorithm(algorithm_of("timely,segment=1000" + more, kFlow)) {}

  // A segment is complete. Returns the rate.
  double complete(double rtt_us) {
    now += 100 * kUs;
    algorithm->on_acknowledged({.now = now,
                                .bytes = 1000,
                                .packets = 1,
                                .rtt_ns = static_cast<TimeNs>((rtt_us + 0.8) * 1000 + 0.5)});
    return shown(*algorithm, "rate");
  }

  TimeNs now = 0;
  std::unique_ptr<Algorithm> algorithm;
};

}  // namespace

TEST_CASE("TIMELY begins at the line's rate, and the first round trip changes nothing") {
  Timely timely;
  CHECK(timely.algorithm->rate_bps() == kFlow.line_rate_bps);
  CHECK(timely.complete(400) == kLineMbps);
  CHECK(timely.algorithm->window_bytes() == kUnlimited);
}

TEST_CASE("TIMELY above t_high: rate *= 1 - beta (1 - t_high / rtt), falling round trips or not") {
  Timely timely;
  timely.complete(2000);
  const double first = kLineMbps * (1 - 0.8 * (1 - 500.0 / 1000));
  CHECK(timely.complete(1000) == Approx(first));
  CHECK(timely.complete(600) == Approx(first * (1 - 0.8 * (1 - 500.0 / 600))));
}

TEST_CASE("TIMELY below t_low: rate += delta, rising round trips or not") {
  Timely timely;
  timely.complete(2000);
  const double rate = timely.complete(1000);
  CHECK(timely.complete(10) == Approx(rate + 10));
  CHECK(timely.complete(49) == Approx(rate + 20));
}

TEST_CASE("TIMELY in between: a positive gradient takes beta times it away") {
  Timely timely;
  timely.complete(100);
  // The difference is 8 us, smoothed 7, of 20 us.
  const double first = kLineMbps * (1 - 0.8 * (0.875 * 8 / 20));
  CHECK(timely.complete(108) == Approx(first));
  CHECK(shown(*timely.algorithm, "gradient") == Approx(0.35));
  // And then 0.125 times 7 with nothing new.
  CHECK(timely.complete(108) == Approx(first * (1 - 0.8 * (0.125 * 7 / 20))));
}

TEST_CASE("TIMELY in between: the fifth completion in a row without a rise is hyperactive") {
  Timely timely;
  timely.complete(1000);
  double rate = timely.complete(1000);
  double rtt = 400;
  for (int i = 1; i <= 4; ++i, rtt -= 10) CHECK(timely.complete(rtt) == Approx(rate += 10));
  CHECK(timely.complete(rtt) == Approx(rate += 50));
  CHECK(timely.complete(rtt - 10) == Approx(rate += 50));
  rate = timely.complete(rtt + 90);
  CHECK(shown(*timely.algorithm, "falling_rtts") == 0);
  // Smoothing forgets the rise by an eighth each time.
  CHECK(timely.complete(rtt - 100) == Approx(rate + 10));
}

TEST_CASE("TIMELY keeps between the least rate and the line's") {
  Timely timely(",min_rate=100");
  timely.complete(100);
  CHECK(timely.complete(499) == Approx(100));  // a gradient beyond 1 / beta
  CHECK(timely.algorithm->rate_bps() == 100'000'000);
  Timely rising;
  rising.complete(10);
  CHECK(rising.complete(10) == kLineMbps);
}

TEST_CASE("TIMELY hears of whole segments, and of packets that were sent once") {
  const auto algorithm = algorithm_of("timely,segment=3000", kFlow);
  const auto acknowledge = [&](std::optional<TimeNs> rtt_ns) {
    algorithm->on_acknowledged(
        {.bytes = 1000, .packets = 1, .in_flight_bytes = 5000, .rtt_ns = rtt_ns});
    return shown(*algorithm, "rtt");
  };
  acknowledge(300 * kUs);
  acknowledge(300 * kUs);
  CHECK(acknowledge(200'800) == Approx(200));
  acknowledge(300 * kUs);
  acknowledge(300 * kUs);
  CHECK(acknowledge(std::nullopt) == Approx(200));
  CHECK(acknowledge(100'800) == Approx(100));
  // All that was in flight is a segment as well.
  algorithm->on_acknowledged({.bytes = 1000, .packets = 1, .rtt_ns = 50'800});
  CHECK(shown(*algorithm, "rtt") == Approx(50));
  const uint64_t rate = algorithm->rate_bps();
  algorithm->on_loss(0);
  algorithm->on_timeout(0);
  CHECK(algorithm->rate_bps() == rate);
}

}  // namespace rocemu::congestion
