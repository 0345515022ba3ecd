// Doorbells that are seen late, and receivers that are not ready at first.
#include <catch2/catch.hpp>
#include <deque>

#include "emulator/shake/queues/first_rnr.h"
#include "emulator/shake/queues/late_doorbells.h"
#include "tests/unit/shake/fakes.h"

namespace rocemu::shake {
namespace {

using transport::QpState;

struct Sends final : transport::SendQueue {
  bool pop(transport::SendWork& work) noexcept override {
    if (posted.empty()) return false;
    work.wr_id = posted.front();
    posted.pop_front();
    return true;
  }
  void release(uint32_t count) noexcept override { released += count; }
  std::deque<uint64_t> posted;
  uint32_t released = 0;
};

struct Receives final : transport::ReceiveQueue {
  bool pop(transport::ReceiveWork&) noexcept override {
    if (posted == 0) return false;
    --posted;
    return true;
  }
  unsigned posted = 0;
};

}  // namespace

TEST_CASE("a doorbell is seen late now and then, and nothing is lost or out of order") {
  unsigned late = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Sends sends;
    Agenda agenda;
    unsigned rung = 0;
    LateDoorbells queue(sends, agenda, test::dice(seed), [&] { ++rung; });
    transport::SendWork work;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < 30; i += 3) {
      agenda.tick(1000 * (i + 1));
      for (uint64_t id = i; id < i + 3; ++id) sends.posted.push_back(id);
      if (!queue.pop(work)) {
        ++late;
        REQUIRE(agenda.next() != kNever);
        agenda.tick(agenda.next());
        REQUIRE(rung > 0);
        REQUIRE(queue.pop(work));
      }
      do CHECK(work.wr_id == expected++);
      while (queue.pop(work));
    }
    CHECK(expected == 30);
    queue.release(2);
    CHECK(sends.released == 2);
  }
  CHECK(late > 20);
  CHECK(late < 500);
}

TEST_CASE("a receiver is not ready once for each connection, if at all") {
  unsigned not_ready = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Receives receives;
    receives.posted = 100;
    FirstRnr queue(receives, test::dice(seed, 50));
    transport::ReceiveWork work;
    CHECK(queue.pop(work));  // not connected
    for (unsigned connection = 0; connection < 4; ++connection) {
      for (const QpState state :
           {QpState::reset, QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
        queue.on_state(state);
      not_ready += queue.pop(work) ? 0 : 1;
      for (unsigned i = 0; i < 10; ++i) CHECK(queue.pop(work));
    }
  }
  CHECK(not_ready > 50);
  CHECK(not_ready < 200);
}

TEST_CASE("a flush finds all receives") {
  Receives receives;
  receives.posted = 1;
  FirstRnr queue(receives, test::dice(1));
  transport::ReceiveWork work;
  queue.on_state(QpState::ready_to_receive);
  queue.on_state(QpState::error);
  CHECK(queue.pop(work));
}

}  // namespace rocemu::shake
