#include <catch2/catch.hpp>
#include <map>

#include "base/random.h"
#include "base/time.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/transport/timer_queue.h"

namespace rocemu::transport {

TEST_CASE("A timer queue hands out what is due, the earliest first") {
  TimerQueue timers;
  CHECK(timers.next_deadline() == kNever);
  timers.schedule(3, 300);
  timers.schedule(1, 100);
  timers.schedule(2, 200);
  CHECK(timers.next_deadline() == 100);
  CHECK_FALSE(timers.pop_due(99));
  CHECK(timers.pop_due(250) == 1u);
  CHECK(timers.pop_due(250) == 2u);
  CHECK_FALSE(timers.pop_due(250));
  timers.cancel(3);
  timers.cancel(3);
  timers.cancel(77);
  CHECK(timers.next_deadline() == kNever);
  CHECK(timers.deadline_of(3) == kNever);
}

TEST_CASE("A timer queue does what a sorted list does") {
  Random random(5);
  TimerQueue timers;
  std::map<uint32_t, TimeNs> model;
  for (int i = 0; i < 20'000; ++i) {
    const auto slot = static_cast<uint32_t>(random.below(40));
    switch (random.below(4)) {
      case 0:
      case 1: {
        const TimeNs at = random.below(1000);
        timers.schedule(slot, at);
        model[slot] = at;
        break;
      }
      case 2:
        timers.cancel(slot);
        model.erase(slot);
        break;
      default: {
        const TimeNs now = random.below(1000);
        const TimeNs first = timers.next_deadline();
        const auto due = timers.pop_due(now);
        REQUIRE(due.has_value() == (first <= now));
        if (!due) break;
        REQUIRE(model.at(*due) == first);
        model.erase(*due);
      }
    }
    TimeNs earliest = kNever;
    for (const auto& [known, at] : model) {
      earliest = std::min(earliest, at);
      REQUIRE(timers.deadline_of(known) == at);
    }
    REQUIRE(timers.next_deadline() == earliest);
  }
}

TEST_CASE("A ring buffer keeps its order while it grows and wraps") {
  RingBuffer<uint64_t> ring;
  std::vector<uint64_t> model;
  Random random(6);
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t choice = random.below(7);
    if (choice < 4) {
      ring.push_back() = i;
      model.push_back(i);
    } else if (choice < 6 && !model.empty()) {
      ring.pop_front();
      model.erase(model.begin());
    } else if (!model.empty()) {
      ring.pop_back();
      model.pop_back();
    }
    if (random.below(200) == 0) {
      ring.clear();
      model.clear();
    }
    REQUIRE(ring.size() == model.size());
    for (size_t k = 0; k < model.size(); ++k) REQUIRE(ring[k] == model[k]);
  }
  ring.release();
  CHECK(ring.empty());
  ring.push_back() = 9;
  CHECK(ring.front() == 9);
}

}  // namespace rocemu::transport
