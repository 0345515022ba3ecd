#include "verbs_shim/provider/rings/poll_pacer.h"

#include <catch2/catch.hpp>

#include "tests/unit/time_units.h"

using namespace rocemu::provider;
using rocemu::kMs;
using rocemu::kUs;

namespace {

using Advice = PollPacer::Advice;

// A thread that polls in vain, each time 100 ns later.
struct Poller {
  PollPacer pacer;
  uint64_t now_ns = kMs;
  uint64_t yield_ns = 2 * kUs;  // what a yield takes
  PollPacer::Engine engine;
  bool engine_stands_still = false;
  bool engine_works = false;

  Advice poll() {
    now_ns += 100;
    if (engine.turn_behind != 0 && !engine_stands_still) ++engine.turn_behind;
    const Advice advice = pacer.on_empty(engine, [this] { return now_ns; });
    if (advice == Advice::kYield) {
      now_ns += yield_ns;
      pacer.on_yield(
          {.waits = engine.here, .stood_still = engine_stands_still, .works = engine_works},
          now_ns);
    }
    return advice;
  }
  int count(Advice wanted, int polls) {
    int count = 0;
    for (int i = 0; i < polls; ++i) count += poll() == wanted;
    return count;
  }
  // One completion, for which it has to wait for one yield.
  void yield_once(uint64_t takes_ns) {
    yield_ns = takes_ns;
    for (int polls = 0; poll() != Advice::kYield; ++polls) REQUIRE(polls < 64);
    yield_ns = 2 * kUs;
    pacer.on_completion();
  }
};

}  // namespace

TEST_CASE("every eighth empty poll in a row yields, and a completion starts the count anew") {
  Poller poller;
  CHECK(poller.count(Advice::kGoOn, 7) == 7);
  CHECK(poller.poll() == Advice::kYield);
  CHECK(poller.count(Advice::kGoOn, 7) == 7);
  poller.pacer.on_completion();
  CHECK(poller.count(Advice::kGoOn, 7) == 7);
  CHECK(poller.poll() == Advice::kYield);

  // Where yields keep finding nobody else, there are fewer of them.
  poller.yield_ns = 200;
  CHECK(poller.count(Advice::kYield, 64) == 8);
  poller.pacer.on_completion();
  CHECK(poller.count(Advice::kGoOn, 63) == 63);
  poller.yield_ns = 2 * kUs;
  CHECK(poller.poll() == Advice::kYield);
  CHECK(poller.count(Advice::kYield, 64) == 8);
}

TEST_CASE("every empty poll yields where the NIC waits for the same core") {
  Poller poller;
  poller.engine.here = true;
  CHECK(poller.count(Advice::kYield, 20) == 20);
}

TEST_CASE("yields that do not let the NIC run end in a sleep") {
  Poller poller;
  poller.engine.here = true;
  poller.yield_ns = 200;
  CHECK(poller.count(Advice::kYield, 32) == 32);
  CHECK(poller.poll() == Advice::kSleep);
  SECTION("and so does the next one that does not") {
    CHECK(poller.poll() == Advice::kYield);
    CHECK(poller.poll() == Advice::kSleep);
  }
  SECTION("until one does") {
    poller.yield_ns = 2 * kUs;
    CHECK(poller.poll() == Advice::kYield);
    poller.yield_ns = 200;
    CHECK(poller.count(Advice::kYield, 32) == 32);
    CHECK(poller.poll() == Advice::kSleep);
  }
}

TEST_CASE("nor do yields to others like it let the NIC run, where it makes no turn meanwhile") {
  Poller poller;
  poller.engine = {.here = true, .turn_behind = 1};
  poller.yield_ns = 100 * kUs;
  CHECK(poller.count(Advice::kYield, 50) == 50);
  poller.engine_stands_still = true;
  poller.yield_ns = 2 * kUs;
  CHECK(poller.count(Advice::kYield, 32) == 32);
  CHECK(poller.poll() == Advice::kSleep);
}

TEST_CASE("a NIC that is behind and makes no turn for two milliseconds has no core") {
  Poller poller;
  poller.engine.turn_behind = 1;
  CHECK(poller.count(Advice::kSleep, 80'000) == 0);
  poller.engine_stands_still = true;
  const uint64_t start = poller.now_ns;
  while (poller.poll() != Advice::kSleep) REQUIRE(poller.now_ns < start + 3 * kMs);
  CHECK(poller.now_ns >= start + 2 * kMs - 10 * kUs);
  CHECK(poller.count(Advice::kSleep, 80) == 10);
  poller.engine_stands_still = false;
  CHECK(poller.count(Advice::kSleep, 80) == 0);
}

TEST_CASE("while the NIC is behind, a thread yields however long it waits and yields take") {
  Poller poller;
  poller.engine.turn_behind = 1;
  SECTION("it has polled in vain for long") {
    for (int yields = 0; yields < 1000; ++yields) poller.yield_once(2 * kUs);
    CHECK(poller.count(Advice::kSleep, 8000) == 0);
  }
  SECTION("others take the core for long") {
    for (int yields = 0; yields < 10; ++yields) poller.yield_once(20 * kMs);
    CHECK(poller.count(Advice::kSleep, 80) == 0);
    poller.engine.turn_behind = 0;
    CHECK(poller.count(Advice::kSleep, 80) == 10);
  }
}

TEST_CASE("a thread that polls in vain for a millisecond sleeps, until there is a completion") {
  Poller poller;
  const uint64_t start = poller.now_ns;
  while (poller.poll() != Advice::kSleep) REQUIRE(poller.now_ns < start + 2 * kMs);
  CHECK(poller.now_ns >= start + kMs);
  CHECK(poller.count(Advice::kSleep, 80) == 10);
  poller.pacer.on_completion();
  CHECK(poller.count(Advice::kSleep, 80) == 0);
}

TEST_CASE("long yields with short ones between them mean nothing") {
  Poller poller;
  for (int i = 0; i < 10; ++i) {
    poller.yield_once(20 * kMs);
    for (int k = 0; k < 3; ++k) poller.yield_once(2 * kUs);
  }
  CHECK(poller.count(Advice::kSleep, 80) == 0);
}

TEST_CASE("nor do long yields in which the NIC was at work") {
  Poller poller;
  poller.engine_works = true;
  for (int i = 0; i < 10; ++i) poller.yield_once(20 * kMs);
  CHECK(poller.count(Advice::kSleep, 80) == 0);
}

TEST_CASE("the time of a long yield is no polling in vain") {
  Poller poller;
  poller.yield_ns = 20 * kMs;
  CHECK(poller.count(Advice::kYield, 8) == 1);
  poller.yield_ns = 2 * kUs;
  CHECK(poller.count(Advice::kYield, 8) == 1);
}

TEST_CASE("after two long yields in a row a thread sleeps in their place for a while") {
  Poller poller;
  poller.yield_once(400 * kUs);
  poller.yield_once(400 * kUs);
  CHECK(poller.count(Advice::kSleep, 8) == 1);
  poller.pacer.on_completion();
  poller.engine.here = true;
  CHECK(poller.poll() == Advice::kSleep);
  poller.now_ns += 49 * kMs;
  CHECK(poller.poll() == Advice::kSleep);

  SECTION("which ends where yields are short") {
    poller.now_ns += kMs;
    poller.pacer.on_completion();
    CHECK(poller.count(Advice::kYield, 20) == 20);
    poller.engine.here = false;
    poller.yield_once(20 * kMs);
    CHECK(poller.count(Advice::kYield, 8) == 1);
  }
  SECTION("which is twice as long where they still are long") {
    poller.now_ns += kMs;
    poller.pacer.on_completion();
    poller.yield_once(20 * kMs);
    poller.now_ns += 99 * kMs;
    CHECK(poller.poll() == Advice::kSleep);
    poller.now_ns += kMs;
    poller.pacer.on_completion();
    CHECK(poller.poll() == Advice::kYield);
  }
}

TEST_CASE("while the NIC has work for all cores, a thread naps and does not yield") {
  Poller poller;
  poller.engine.crowded = true;
  CHECK(poller.count(Advice::kNap, 16) == 2);
}

TEST_CASE("every now and then a thread that polls in vain looks for the NIC") {
  Poller poller;
  poller.count(Advice::kGoOn, 1000);
  CHECK_FALSE(poller.pacer.look_is_due());
  poller.count(Advice::kGoOn, 8192);
  CHECK(poller.pacer.look_is_due());
  CHECK_FALSE(poller.pacer.look_is_due());
  PollPacer keeps_its_core;
  for (int i = 0; i < 8192; ++i) keeps_its_core.on_empty_without_wait();
  CHECK(keeps_its_core.look_is_due());
}
