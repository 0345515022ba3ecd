#include "impairment/link.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace rocemu::impairment {
namespace {

constexpr size_t kFrameBytes = 1000;
constexpr int kFrames = 100'000;

// Within five standard deviations of what the probability says.
void check_count(uint64_t count, uint64_t frames, double probability) {
  const double expected = static_cast<double>(frames) * probability;
  CHECK(std::abs(static_cast<double>(count) - expected) < 5 * std::sqrt(expected) + 1);
}

}  // namespace

TEST_CASE("a perfect wire delivers each frame once and at once") {
  Link link({}, 1);
  for (uint64_t now_ns = 0; now_ns < 100; ++now_ns) {
    const Fate fate = link.judge(now_ns, kFrameBytes);
    REQUIRE(fate.arrival_count == 1);
    CHECK(fate.arrivals[0].at_ns == now_ns);
    CHECK_FALSE(fate.arrivals[0].corrupted);
  }
}

TEST_CASE("the same seed makes the same of the same frames, another seed does not") {
  const Impairments bad{
      .delay_ns = 10, .jitter_ns = 1000, .loss_ppm = 100'000, .corrupt_ppm = 500'000};
  Link one(bad, 7), same(bad, 7), other(bad, 8);
  int differences = 0;
  for (uint64_t now_ns = 0; now_ns < 1000; ++now_ns) {
    const Fate a = one.judge(now_ns, kFrameBytes);
    const Fate b = same.judge(now_ns, kFrameBytes);
    CHECK(a.loss == b.loss);
    CHECK(a.arrivals == b.arrivals);
    differences += other.judge(now_ns, kFrameBytes).arrivals[0].at_ns != a.arrivals[0].at_ns;
  }
  CHECK(differences > 500);
}

TEST_CASE("frequencies are those that were asked for") {
  Link link({.loss_ppm = 10'000, .duplicate_ppm = 50'000, .corrupt_ppm = 20'000}, 3);
  uint64_t lost = 0, twice = 0, corrupted = 0;
  for (int i = 0; i < kFrames; ++i) {
    const Fate fate = link.judge(0, kFrameBytes);
    lost += fate.loss == Loss::random;
    twice += fate.arrival_count == 2;
    for (const Arrival& arrival : fate.view()) {
      corrupted += arrival.corrupted;
      if (arrival.corrupted) {
        CHECK(arrival.corrupt_offset_bytes < kFrameBytes);
        CHECK(arrival.corrupt_mask != 0);
      }
    }
  }
  check_count(lost, kFrames, 0.01);
  check_count(twice, kFrames, 0.99 * 0.05);
  check_count(corrupted, kFrames, 0.99 * 1.05 * 0.02);
}

TEST_CASE("jitter keeps the order, reordering does not") {
  Link jittery({.delay_ns = 1000, .jitter_ns = 500}, 1);
  uint64_t last_ns = 0;
  for (uint64_t now_ns = 0; now_ns < 10'000; now_ns += 10) {
    const uint64_t at_ns = jittery.judge(now_ns, kFrameBytes).arrivals[0].at_ns;
    CHECK(at_ns >= last_ns);
    CHECK(at_ns >= now_ns + 1000);
    CHECK(at_ns <= now_ns + 1500);
    last_ns = at_ns;
  }
  Link reordering({.reorder_ppm = 100'000, .reorder_delay_ns = 1000}, 1);
  uint64_t overtaken = 0, latest_ns = 0;
  for (uint64_t now_ns = 0; now_ns < 100'000; now_ns += 10) {
    const uint64_t at_ns = reordering.judge(now_ns, kFrameBytes).arrivals[0].at_ns;
    overtaken += at_ns < latest_ns;
    latest_ns = std::max(latest_ns, at_ns);
  }
  CHECK(overtaken > 1000);
}

TEST_CASE("frames leave at the rate, and what exceeds the queue is lost") {
  // 1000 bytes take 1 us; three of them may wait.
  Link link({.rate_bits_per_s = 8'000'000'000, .queue_limit_bytes = 3000}, 1);
  std::vector<uint64_t> arrivals;
  int lost = 0;
  for (int i = 0; i < 5; ++i) {
    const Fate fate = link.judge(0, kFrameBytes);
    lost += fate.loss == Loss::queue_full;
    for (const Arrival& arrival : fate.view()) arrivals.push_back(arrival.at_ns);
  }
  CHECK(arrivals == std::vector<uint64_t>{1000, 2000, 3000});
  CHECK(lost == 2);
  CHECK(link.judge(2000, kFrameBytes).arrivals[0].at_ns == 4000);
}

TEST_CASE("a slow link has a queue as well, and a long one does not overflow") {
  Link slow({.rate_bits_per_s = 1000, .queue_limit_bytes = 2000}, 1);
  CHECK(slow.judge(0, kFrameBytes).arrivals[0].at_ns == 8'000'000'000);
  CHECK(slow.judge(0, kFrameBytes).arrivals[0].at_ns == 16'000'000'000);
  CHECK(slow.judge(0, kFrameBytes).loss == Loss::queue_full);
  Link fast({.rate_bits_per_s = 10'000'000'000'000, .queue_limit_bytes = 1'000'000'000'000}, 1);
  for (int i = 0; i < 1000; ++i) CHECK(fast.judge(0, 1'000'000'000).loss == Loss::none);
  CHECK(fast.judge(0, 1).loss == Loss::queue_full);
}

TEST_CASE("outages take their share of the time") {
  Link link({.outage_interval_ns = 9000, .outage_length_ns = 1000}, 5);
  uint64_t lost = 0;
  constexpr uint64_t kSteps = 1'000'000;
  for (uint64_t step = 0; step < kSteps; ++step)
    lost += link.judge(step * 100, kFrameBytes).loss == Loss::outage;
  CHECK(lost > kSteps * 8 / 100);
  CHECK(lost < kSteps * 12 / 100);
}

TEST_CASE("outages of a link that was silent for long cost no time") {
  Link link({.outage_interval_ns = 1, .outage_length_ns = 1}, 5);
  link.judge(0, kFrameBytes);
  for (uint64_t year = 1; year < 100; ++year)
    link.judge(year * 31'536'000'000'000'000, kFrameBytes);
}

TEST_CASE("corruption changes the byte it says") {
  std::vector<std::byte> frame(4, std::byte{0x0f});
  corrupt({}, frame);
  CHECK(frame == std::vector<std::byte>(4, std::byte{0x0f}));
  corrupt({.corrupted = true, .corrupt_offset_bytes = 2, .corrupt_mask = 0xff}, frame);
  CHECK(frame[2] == std::byte{0xf0});
  CHECK(frame[1] == std::byte{0x0f});
}

}  // namespace rocemu::impairment
