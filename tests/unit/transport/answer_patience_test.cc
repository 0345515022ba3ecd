#include "emulator/transport/answer_patience.h"

#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {
namespace {

constexpr TimeNs kSoonNs = 100 * kUs;

}  // namespace

TEST_CASE("An engine whose turns come in time waits no longer for answers") {
  AnswerPatience patience;
  TimeNs now = 0;
  for (int i = 0; i < 10; ++i) patience.on_turn(now += kSoonNs, kNever, false);
  CHECK(patience.answers_by(now) <= now);
  // It slept until a deadline.
  now += 100 * kMs;
  patience.on_turn(now, now - 50 * kUs, false);
  CHECK(patience.answers_by(now) <= now);
}

TEST_CASE("An engine that was away has time to look for answers") {
  AnswerPatience patience;
  patience.on_turn(10 * kMs, kNever, false);
  const TimeNs back = 110 * kMs;
  const TimeNs until = back + AnswerPatience::kMaxPatienceNs;
  patience.on_turn(back, 20 * kMs, false);
  CHECK(patience.answers_by(back) == until);
  // So it has for what is due a little later, and not for ever.
  patience.on_turn(back + kSoonNs, back + kSoonNs / 2, false);
  CHECK(patience.answers_by(back + kSoonNs) == until);
  CHECK(patience.answers_by(until) <= until);
}

TEST_CASE("Answers that a turn leaves at the port are waited for, but not for ever") {
  AnswerPatience patience;
  TimeNs now = 0;
  patience.on_turn(now += kSoonNs, kNever, false);
  patience.on_turn(now, kNever, true);
  CHECK(patience.answers_by(now) == now + AnswerPatience::kBacklogNs);
  const TimeNs since = now;
  while (now - since < AnswerPatience::kMaxBacklogNs)
    patience.on_turn(now += kSoonNs, kNever, true);
  CHECK(patience.answers_by(now) <= now);
  patience.on_turn(now += kSoonNs, kNever, false);
  patience.on_turn(now += kSoonNs, kNever, true);
  CHECK(patience.answers_by(now) == now + AnswerPatience::kBacklogNs);
}

TEST_CASE("An answer that was not looked at yet is no missing one") {
  PairOptions options;
  options.retry_count = 0;
  Pair pair(options);
  pair.lose = [](const Sent& frame) { return !frame.from_a; };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.run_for(50 * kUs);
  Endpoint& endpoint = pair.a.endpoint();
  const TimeNs back = pair.fabric.now_ns() + 2 * kMs;
  endpoint.on_timeout(back, back + kMs);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.a.state() == QpState::ready_to_send);
  endpoint.on_timeout(back + kMs);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 1);
  CHECK(pair.a.state() == QpState::error);
}

// Turns that come late for the ACK timeout, and take one frame each.
TEST_CASE("A NIC that is away again and again loses no connection") {
  PairOptions options;
  options.node.poll_interval_ns = 2500 * kUs;
  options.node.rx_burst = 1;
  options.retry_count = 0;
  Pair pair(options);
  const Buffer far = pair.b.buffer(8);
  for (uint64_t id = 1; id <= 8; ++id) pair.a.post(write(pair.a.buffer(8, 1), far, id));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(8, WcStatus::success));
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 0);
}

TEST_CASE("A NIC that is always late gives up in the end") {
  PairOptions options;
  options.node.poll_interval_ns = 2500 * kUs;
  Pair pair(options);
  pair.lose = [](const Sent& frame) { return !frame.from_a; };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::retry_exceeded_error});
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 4);
}

}  // namespace rocemu::transport_test
