#include "emulator/daemon/engine/pace/idle_policy.h"

#include <catch2/catch.hpp>

#include "base/time.h"
#include "tests/unit/time_units.h"

namespace rocemu::daemon {
namespace {

using Action = IdlePolicy::Action;

// Empty turns of 100 ns until it sleeps; when that was.
TimeNs idle_until_sleep(IdlePolicy& policy, TimeNs now, unsigned* yields = nullptr) {
  for (;; now += 100) {
    const Action action = policy.on_empty_turn(now, false);
    if (action == Action::sleep) return now;
    if (action == Action::yield && yields != nullptr) ++*yields;
  }
}

}  // namespace

TEST_CASE(
    "after a sleep that only time has ended, a turn without work is followed by the next sleep") {
  IdlePolicy policy;
  idle_until_sleep(policy, kMs);
  policy.on_wake_up(true);
  CHECK(policy.on_empty_turn(5 * kMs, false) == Action::sleep);
  policy.on_wake_up(false);
  CHECK(idle_until_sleep(policy, 9 * kMs) == 9 * kMs + 50 * kUs);
  policy.on_wake_up(true);
  policy.on_work(19 * kMs);
  CHECK(idle_until_sleep(policy, 19 * kMs) == 19 * kMs + 50 * kUs);
}

TEST_CASE("what keeps it from sleeping in vain makes it yield, in block mode as well") {
  IdlePolicy policy;
  TimeNs now = kMs;
  if (GENERATE(false, true)) {
    for (int i = 0; i < 2; ++i, now += kMs) policy.on_yield(now, now + 400 * kUs);
    REQUIRE(policy.block_mode(now));
  }
  // Turns that are longer than it waits for the next sleep.
  policy.on_empty_turn(now, false);
  CHECK(policy.on_empty_turn(now + 60 * kUs, false) == Action::sleep);
  policy.on_kept_awake();
  CHECK(policy.on_empty_turn(now + 120 * kUs, false) == Action::yield);
  CHECK(policy.on_empty_turn(now + 180 * kUs, false) == Action::sleep);
  policy.on_kept_awake();
  policy.on_work(now + 240 * kUs);
  CHECK(policy.on_empty_turn(now + 240 * kUs, false) == Action::poll);
}

TEST_CASE("without work it polls, yields every eighth turn, and sleeps after 50 us") {
  IdlePolicy policy;
  unsigned yields = 0;
  CHECK(idle_until_sleep(policy, kMs, &yields) == kMs + 50 * kUs);
  CHECK(yields == 500 / 8);
}

TEST_CASE("work starts the time anew") {
  IdlePolicy policy;
  for (TimeNs now = kMs; now < kMs + 40 * kUs; now += 100) policy.on_empty_turn(now, false);
  policy.on_work(2 * kMs);
  CHECK(idle_until_sleep(policy, 2 * kMs) == 2 * kMs + 50 * kUs);
}

TEST_CASE("it is behind when a millisecond's turns have all found work, until one finds none") {
  IdlePolicy policy;
  CHECK_FALSE(policy.behind(kMs));
  policy.on_work(kMs);
  policy.on_work(2 * kMs - 1);
  CHECK_FALSE(policy.behind(2 * kMs - 1));
  CHECK(policy.behind(2 * kMs));
  policy.on_empty_turn(2 * kMs, false);
  CHECK_FALSE(policy.behind(2 * kMs));
  policy.on_work(3 * kMs);
  CHECK_FALSE(policy.behind(3 * kMs));
  CHECK(policy.behind(4 * kMs));
}

TEST_CASE("it yields at once to a program that has been answered on its core") {
  IdlePolicy policy;
  CHECK(policy.on_empty_turn(kMs, true) == Action::yield);
  CHECK(policy.on_empty_turn(kMs + 100, false) == Action::poll);
  policy.on_yield(2 * kMs, 3 * kMs);
  policy.on_yield(3 * kMs, 4 * kMs);
  CHECK(policy.on_empty_turn(4 * kMs + 100, true) == Action::sleep);
}

TEST_CASE("one long yield is anybody's, a second one soon after starts block mode") {
  IdlePolicy policy;
  policy.on_yield(kMs, kMs + 300 * kUs);
  policy.on_yield(2 * kMs, 2 * kMs + 301 * kUs);
  CHECK_FALSE(policy.block_mode(2 * kMs + 301 * kUs));
  policy.on_yield(13 * kMs, 14 * kMs);
  CHECK_FALSE(policy.block_mode(14 * kMs));
  policy.on_yield(23 * kMs, 24 * kMs);
  CHECK(policy.block_mode(24 * kMs));
}

TEST_CASE(
    "in block mode it sleeps soon, but not before a program on another CPU can have answered") {
  IdlePolicy policy;
  policy.on_yield(kMs, kMs + 301 * kUs);
  const TimeNs start = 2 * kMs + 301 * kUs;
  policy.on_yield(2 * kMs, start);
  CHECK(policy.block_mode(start));
  policy.on_work(start);
  CHECK(policy.on_empty_turn(start, false) == IdlePolicy::Action::poll);
  CHECK(policy.on_empty_turn(start + 2 * kUs, false) == IdlePolicy::Action::poll);
  CHECK(policy.on_empty_turn(start + 3 * kUs, false) == IdlePolicy::Action::sleep);
  CHECK(policy.block_mode(start + 20 * kMs - 1));
  CHECK_FALSE(policy.block_mode(start + 20 * kMs));
}

TEST_CASE("block mode that is needed again at once lasts longer, up to a bound") {
  IdlePolicy policy;
  TimeNs now = kMs;
  policy.on_yield(now, now + kMs);
  now += kMs;
  TimeNs length = 0;
  for (const TimeNs expected : {20 * kMs, 40 * kMs, 80 * kMs, 160 * kMs, 200 * kMs, 200 * kMs}) {
    policy.on_yield(now, now + kMs);
    now += kMs;
    for (length = 0; policy.block_mode(now + length); length += kMs) {
    }
    CHECK(length == expected);
    now += length;
  }
  now += 1000 * kMs;
  policy.on_yield(now, now + kMs);
  CHECK_FALSE(policy.block_mode(now + kMs));
  policy.on_yield(now + kMs, now + 2 * kMs);
  CHECK(policy.block_mode(now + 2 * kMs));
  CHECK_FALSE(policy.block_mode(now + 2 * kMs + 20 * kMs));
}

}  // namespace rocemu::daemon
