#include "emulator/fault/trigger.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/time_units.h"

namespace rocemu::fault {
namespace {

constexpr TimeNs kBegan = 1'000'000;
constexpr TimeNs kAsked = 5'000'000;

// Runs the clock to `until_ns`, from deadline to deadline, and writes down what changes and when.
std::vector<std::string> run(Trigger& trigger, TimeNs until_ns) {
  std::vector<std::string> story;
  TimeNs now = kAsked;
  for (;;) {
    for (;;) {
      const Trigger::Change change = trigger.on_time(now);
      if (change == Trigger::Change::none) break;
      story.push_back((change == Trigger::Change::begins ? "begins " : "ends ") +
                      std::to_string((now - kAsked) / kMs));
    }
    if (trigger.next_ns() > until_ns) return story;
    now = std::max(now, trigger.next_ns());
  }
}

using Story = std::vector<std::string>;

Trigger make(const When& when, Nature nature) { return Trigger(when, nature, kAsked, kBegan); }

}  // namespace

TEST_CASE("a moment strikes at once, later, or at a time of the NIC's life") {
  Trigger now = make({}, Nature::moment);
  CHECK(run(now, kAsked + 100 * kMs) == Story{"begins 0"});
  CHECK(now.state() == Trigger::State::over);
  CHECK(now.strikes() == 1);
  CHECK(now.next_ns() == kNever);
  Trigger later = make({.after_ns = 3 * kMs}, Nature::moment);
  CHECK(run(later, kAsked + 100 * kMs) == Story{"begins 3"});
  Trigger at = make({.at_ns = 10 * kMs}, Nature::moment);
  CHECK(run(at, kAsked + 100 * kMs) == Story{"begins 6"});
  Trigger past = make({.at_ns = 1}, Nature::moment);
  CHECK(run(past, kAsked + 100 * kMs) == Story{"begins 0"});
}

TEST_CASE("a moment comes again, without drift, as often as it may") {
  Trigger trigger = make({.every_ns = 10 * kMs, .times = 3}, Nature::moment);
  CHECK(run(trigger, kAsked + 100 * kMs) == Story{"begins 0", "begins 10", "begins 20"});
  CHECK(trigger.state() == Trigger::State::over);
  Trigger forever = make({.every_ns = 10 * kMs}, Nature::moment);
  CHECK(run(forever, kAsked + 35 * kMs).size() == 4);
  CHECK(forever.state() == Trigger::State::waiting);
}

TEST_CASE("a state lasts for a time, until it is taken back, or flaps") {
  Trigger once = make({.for_ns = 4 * kMs}, Nature::state);
  CHECK(run(once, kAsked + 100 * kMs) == Story{"begins 0", "ends 4"});
  CHECK(once.state() == Trigger::State::over);
  Trigger lasting = make({}, Nature::state);
  CHECK(run(lasting, kAsked + 100 * kMs) == Story{"begins 0"});
  CHECK(lasting.state() == Trigger::State::active);
  Trigger flapping = make({.for_ns = 2 * kMs, .every_ns = 10 * kMs, .times = 2}, Nature::state);
  CHECK(run(flapping, kAsked + 100 * kMs) == Story{"begins 0", "ends 2", "begins 10", "ends 12"});
  CHECK(flapping.strikes() == 2);
}

TEST_CASE("what counts begins by the number, and again when it may") {
  Trigger trigger =
      make({.after_ns = kMs, .times = 2, .counted = Counted::requests, .count = 3}, Nature::moment);
  CHECK(trigger.counts() == Counted::nothing);
  CHECK(trigger.on_count(kAsked) == Trigger::Change::none);
  CHECK(run(trigger, kAsked + 2 * kMs).empty());
  CHECK(trigger.counts() == Counted::requests);
  using enum Trigger::Change;
  for (const auto expected : {none, none, begins, none, none, begins, none, none, none})
    CHECK(trigger.on_count(kAsked + 2 * kMs) == expected);
  CHECK(trigger.state() == Trigger::State::over);
  CHECK(trigger.counts() == Counted::nothing);
}

TEST_CASE("a state that counts ends by the clock") {
  Trigger trigger =
      make({.for_ns = 2 * kMs, .counted = Counted::packets, .count = 1}, Nature::state);
  CHECK(run(trigger, kAsked).empty());
  CHECK(trigger.on_count(kAsked + 10 * kMs) == Trigger::Change::begins);
  CHECK(trigger.counts() == Counted::nothing);
  CHECK(trigger.next_ns() == kAsked + 12 * kMs);
  CHECK(trigger.on_time(kAsked + 11 * kMs) == Trigger::Change::none);
  CHECK(trigger.on_time(kAsked + 12 * kMs) == Trigger::Change::ends);
  CHECK(trigger.state() == Trigger::State::over);
}

TEST_CASE("a filter strikes events while it is active") {
  Trigger trigger = make({.after_ns = kMs, .for_ns = 5 * kMs}, Nature::filter);
  CHECK_FALSE(trigger.on_event());
  CHECK(trigger.on_time(kAsked + kMs) == Trigger::Change::begins);
  CHECK(trigger.on_event());
  CHECK(trigger.on_event());
  CHECK(trigger.on_time(kAsked + 6 * kMs) == Trigger::Change::ends);
  CHECK_FALSE(trigger.on_event());
  CHECK(trigger.strikes() == 2);
}

TEST_CASE("a filter with a number strikes that one, or from it on") {
  Trigger third = make({.count = 3}, Nature::filter);
  run(third, kAsked);
  CHECK_FALSE(third.on_event());
  CHECK_FALSE(third.on_event());
  CHECK(third.on_event());
  CHECK_FALSE(third.on_event());
  CHECK(third.state() == Trigger::State::over);
  Trigger from_second = make({.times = 2, .count = 2}, Nature::filter);
  run(from_second, kAsked);
  CHECK_FALSE(from_second.on_event());
  CHECK(from_second.on_event());
  CHECK(from_second.on_event());
  CHECK_FALSE(from_second.on_event());
}

TEST_CASE("chance is seeded") {
  const auto struck = [](uint64_t seed) {
    Trigger trigger = make({.probability_ppm = 100'000, .seed = seed}, Nature::filter);
    run(trigger, kAsked);
    std::vector<bool> hits;
    for (int i = 0; i < 10'000; ++i) hits.push_back(trigger.on_event());
    CHECK(trigger.strikes() > 800);
    CHECK(trigger.strikes() < 1200);
    return hits;
  };
  CHECK(struck(1) == struck(1));
  CHECK(struck(1) != struck(2));
  Trigger never = make({.every_ns = kMs, .probability_ppm = 0}, Nature::moment);
  CHECK(run(never, kAsked + 50 * kMs).empty());
  CHECK(never.strikes() == 0);
}

TEST_CASE("a clock that jumps goes on from there, and makes nothing up") {
  Trigger trigger = make({.for_ns = kMs, .every_ns = 10 * kMs, .times = 3}, Nature::state);
  using enum Trigger::Change;
  for (const auto expected : {begins, none})
    CHECK(trigger.on_time(kAsked + 1000 * kMs) == expected);
  CHECK(trigger.next_ns() == kAsked + 1001 * kMs);

  Trigger moment = make({.every_ns = 10 * kMs}, Nature::moment);
  for (const auto expected : {begins, none}) CHECK(moment.on_time(kAsked + 1003 * kMs) == expected);
  CHECK(moment.next_ns() == kAsked + 1010 * kMs);
}

}  // namespace rocemu::fault
