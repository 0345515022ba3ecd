#include "emulator/shake/queues/event_timing.h"

#include <catch2/catch.hpp>
#include <utility>

#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

using test::completion;
using test::FakeRing;

struct Timed {
  explicit Timed(uint64_t seed)
      : ring(std::make_unique<EventTiming>(std::make_unique<FakeRing>(state), agenda,
                                           test::dice(seed))) {
    ring->set_owner(owner);
    agenda.tick(1000);
  }
  // As a CQ does; counts events.
  void publish() {
    if (ring->show() && ring->take_arm()) ++events;
  }
  void pass_time() {
    while (agenda.next() != kNever) {
      agenda.tick(agenda.next());
      if (std::exchange(owner.calls, 0) > 0) publish();
    }
  }

  FakeRing::State state;
  Agenda agenda;
  test::FakeOwner owner;
  unsigned events = 0;
  std::unique_ptr<EventTiming> ring;
};

}  // namespace

TEST_CASE("an event that was asked for comes once, at once or late") {
  unsigned late = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Timed timed(seed);
    timed.state.armed = true;
    timed.ring->push(completion(1, false, 1));
    timed.publish();
    late += timed.events == 0;
    CHECK(timed.state.shown.size() == 1);  // the completion itself is not late
    timed.pass_time();
    CHECK(timed.events == 1);
  }
  CHECK(late > 20);
  CHECK(late < 180);
}

TEST_CASE("one event may tell of many completions, and an event of nothing") {
  unsigned one_for_many = 0, spurious = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Timed timed(seed);
    timed.state.armed = true;
    for (uint64_t i = 0; i < 3; ++i) {
      timed.ring->push(completion(1, false, i));
      timed.publish();
    }
    const bool waited = timed.events == 0;
    timed.state.armed = true;  // asked again, as programs do before they poll
    timed.pass_time();
    one_for_many += waited && timed.events == 1;
    spurious += timed.events == 2;
  }
  CHECK(one_for_many > 5);
  CHECK(spurious > 5);
}

TEST_CASE("no event comes to who has not asked") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Timed timed(seed);
    timed.ring->push(completion(1, false, 1));
    timed.publish();
    timed.pass_time();
    CHECK(timed.events == 0);
    timed.state.armed = true;
    timed.ring->push(completion(1, false, 2));
    timed.publish();
    timed.pass_time();
    CHECK(timed.events == 1);  // and a second one, for nothing, finds that nobody has asked
  }
}

TEST_CASE("an event that waits goes over to the ring that takes over") {
  unsigned waiting = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Timed old(seed), next(seed + 1000);
    old.state.armed = true;
    old.ring->push(completion(1, false, 1));
    old.publish();
    if (old.events != 0) continue;
    ++waiting;
    REQUIRE(next.ring->take_over(*old.ring));
    next.state.armed = true;  // the inner rings hand that over
    next.pass_time();
    CHECK(next.events == 1);
  }
  CHECK(waiting > 5);
}

}  // namespace rocemu::shake
