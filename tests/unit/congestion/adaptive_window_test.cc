// How many packets may be under way after losses and without them, and how fast they leave.
#include "emulator/congestion/adaptive_window.h"

#include <catch2/catch.hpp>

namespace rocemu::congestion {

namespace {

constexpr TimeNs kRttNs = 100'000;

// A window whose round trips are measured, at moments that lie a round trip apart.
struct Measured {
  explicit Measured(uint32_t limit, uint32_t delivered = 1) : window(limit, 1) {
    acknowledge(delivered);
  }
  void acknowledge(uint32_t packets, TimeNs rtt_ns = kRttNs) {
    now += rtt_ns;
    window.on_acknowledged(now, packets, rtt_ns);
  }
  void lose() {
    now += 2 * kRttNs;
    window.on_nak(now);
  }

  AdaptiveWindow window;
  TimeNs now = 0;
};

}  // namespace

TEST_CASE("Without a loss the window is the configured one, and nothing is paced") {
  Measured path(256);
  for (int i = 0; i < 100; ++i) path.acknowledge(64, (i + 1) * kRttNs);
  path.window.on_overdue(path.now);
  CHECK(path.window.packets() == 256);
  CHECK(path.window.interval_ns() == 0);
}

TEST_CASE("Losses narrow the window to less than a packet in a round trip") {
  const auto on_loss = GENERATE(&AdaptiveWindow::on_nak, &AdaptiveWindow::on_timeout);
  Measured path(256);
  uint32_t before = 256;
  for (int i = 0; i < 40; ++i) {
    path.now += 2 * kRttNs;
    (path.window.*on_loss)(path.now);
    CHECK(path.window.packets() <= before);
    before = path.window.packets();
  }
  CHECK(before == 1);
  CHECK(path.window.interval_ns() > 10 * kRttNs);
}

TEST_CASE("Retries are not used up before the window is down to few packets") {
  Measured path(256, 8);
  for (int i = 0; i < 5; ++i) path.lose();
  CHECK(path.window.packets() <= 3);
}

TEST_CASE("A NAK that cannot answer what was sent since the last one is about the same loss") {
  Measured path(256);
  path.lose();
  const uint32_t before = path.window.packets();
  for (int i = 0; i < 10; ++i) path.window.on_nak(path.now + kRttNs / 2);
  CHECK(path.window.packets() == before);
  path.lose();
  CHECK(path.window.packets() < before);
}

TEST_CASE("Losses cost less when many windows are between them") {
  const uint32_t windows = GENERATE(0u, 1u, 4u);
  Measured rare(256, 256 * (windows + 1)), frequent(256, 256 * windows);
  for (Measured* path : {&rare, &frequent}) {
    path->acknowledge(1, 2 * kRttNs);
    path->acknowledge(1, 2 * kRttNs);
    path->lose();
  }
  CHECK(rare.window.interval_ns() < frequent.window.interval_ns());
}

TEST_CASE("A narrowed window leaves evenly, by and large in a round trip") {
  Measured path(256);
  path.lose();
  const uint32_t half = path.window.packets() / 2;
  TimeNs sum_ns = 0;
  for (uint32_t i = 0; i < half; ++i) sum_ns += path.window.interval_ns();
  CHECK(sum_ns > kRttNs * 3 / 4);
  CHECK(sum_ns < kRttNs * 5 / 4);
}

TEST_CASE("A loss without a queue costs little, unless there are many in a window") {
  Measured lossy(256, 256), queued(256, 256);
  for (Measured* path : {&lossy, &queued}) {
    const TimeNs rtt_ns = path == &queued ? kRttNs + kRttNs / 20 : kRttNs;
    path->acknowledge(1, rtt_ns);
    SECTION("one long round trip tells nothing") { lossy.acknowledge(1, 2 * kRttNs); }
    path->acknowledge(1, rtt_ns);
    path->lose();
  }
  CHECK(lossy.window.packets() == 256);
  CHECK(lossy.window.interval_ns() > 0);
  CHECK(queued.window.interval_ns() > lossy.window.interval_ns());
  for (int i = 0; i < 10; ++i) lossy.lose();
  CHECK(lossy.window.packets() < 16);
}

TEST_CASE("Equal windows on one path are equal rates, whatever each QP has measured") {
  const bool on_one_path = GENERATE(true, false);
  const auto path = std::make_shared<PathRoundTrips>();
  AdaptiveWindow early(256, 1), late(256, 1);
  if (on_one_path) early.join(path), late.join(path);
  early.on_acknowledged(0, 1, kRttNs);
  late.on_acknowledged(0, 1, 4 * kRttNs);
  for (AdaptiveWindow* window : {&early, &late}) window->on_timeout(10 * kRttNs);
  CHECK(early.packets() == late.packets());
  if (on_one_path) {
    early.on_timeout(20 * kRttNs), late.on_timeout(20 * kRttNs);
    CHECK(early.interval_ns() == late.interval_ns());
  } else {
    CHECK(3 * early.interval_ns() < late.interval_ns());
  }
}

TEST_CASE("A QP whose peer holds its answers back makes others no slower than four times") {
  const auto path = std::make_shared<PathRoundTrips>();
  AdaptiveWindow alone(256, 1), beside(256, 1), held(256, 1);
  beside.join(path), held.join(path);
  held.on_acknowledged(0, 1, 10'000 * kRttNs);
  for (AdaptiveWindow* window : {&alone, &beside}) {
    window->on_acknowledged(0, 1, kRttNs);
    window->on_timeout(10 * kRttNs);
  }
  REQUIRE(alone.packets() == beside.packets());
  CHECK(beside.interval_ns() > 3 * alone.interval_ns());
  CHECK(beside.interval_ns() <= 4 * alone.interval_ns() + 4);
}

TEST_CASE("What another QP has measured tells one that there is a queue") {
  AdaptiveWindow alone(256, 1), beside(256, 1), early(256, 1);
  const auto path = std::make_shared<PathRoundTrips>();
  early.join(path);
  beside.join(path);
  early.on_acknowledged(0, 1, kRttNs);
  for (AdaptiveWindow* window : {&alone, &beside}) {
    for (int i = 0; i < 2; ++i) window->on_acknowledged(0, 128, 4 * kRttNs);
    for (int i = 1; i <= 3; ++i) window->on_nak(10 * i * kRttNs);
  }
  // Where no queue is known of, the losses are some by chance.
  CHECK(alone.packets() == 256);
  CHECK(beside.packets() < 200);
}

TEST_CASE("With a queue that stays a large window gains less on a small one than it had") {
  Measured small(256), large(256);
  for (int i = 0; i < 4; ++i) small.lose();
  large.lose();
  const uint32_t small_before = small.window.packets(), large_before = large.window.packets();
  REQUIRE(large_before > 4 * small_before);
  for (int i = 0; i < 100; ++i)
    for (Measured* path : {&small, &large})
      path->acknowledge(path->window.packets() / 2, 4 * kRttNs);
  const uint32_t small_after = small.window.packets(), large_after = large.window.packets();
  CHECK(2 * small_after * large_before > 3 * small_before * large_after);
  CHECK(large_after - large_before <= 100);
}

TEST_CASE("With a queue that stays the window widens slower") {
  Measured open(256), queued(256);
  for (Measured* path : {&open, &queued})
    for (int i = 0; i < 4; ++i) path->lose();
  const uint32_t before = open.window.packets();
  CHECK(queued.window.packets() == before);
  for (int i = 0; i < 16; ++i) {
    open.acknowledge(16);
    queued.acknowledge(16, 4 * kRttNs);
  }
  CHECK(open.window.packets() > queued.window.packets());
  CHECK(queued.window.packets() > before);
}

TEST_CASE("An overdue answer counts when the window is narrow, or nothing was ever measured") {
  AdaptiveWindow unknown(256, 1);
  unknown.on_overdue(0);
  CHECK(unknown.packets() == 16);
  CHECK(unknown.interval_ns() == 0);
  unknown.on_overdue(0);
  CHECK(unknown.interval_ns() > 0);
  Measured path(256);
  path.lose();
  const TimeNs before_ns = path.window.interval_ns();
  path.window.on_overdue(path.now + 2 * kRttNs);
  CHECK(path.window.interval_ns() > before_ns);
}

TEST_CASE("What is acknowledged makes the window whole again, and then nothing is paced") {
  const uint32_t limit = GENERATE(1u, 2u, 100u, 256u);
  Measured path(limit);
  for (int i = 0; i < 20; ++i) path.lose();
  for (int i = 0; i < 10'000; ++i) path.acknowledge(path.window.packets());
  CHECK(path.window.packets() == limit);
  CHECK(path.window.interval_ns() == 0);
}

}  // namespace rocemu::congestion
