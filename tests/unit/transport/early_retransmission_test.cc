// What is sent again before the ACK timeout, by the measured round trip, and what is not.
#include <catch2/catch.hpp>

#include "base/time.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/rtt_estimator.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

// With an ACK timeout of 67 ms, and after a first message, so that a round trip is known.
struct Warm : Pair {
  explicit Warm(PairOptions options = {}) : Pair(with_timeout(options)) {
    a.post(write(near, far, 1));
    run_for(50 * kUs);
    REQUIRE(wr_ids(a.send_cq) == std::vector<uint64_t>{1});
    a.send_cq.completions.clear();
    sent.clear();
  }
  static PairOptions with_timeout(PairOptions options) {
    if (options.timeout != 0) options.timeout = 14;
    return options;
  }
  void lose_once(std::function<bool(const Sent&)> which) {
    lose = [which, lost = false](const Sent& frame) mutable {
      return which(frame) && !std::exchange(lost, true);
    };
  }
  std::vector<uint64_t> gaps_ns() const {
    std::vector<uint64_t> gaps;
    for (size_t i = 1; i < sent.size(); ++i) gaps.push_back(sent[i].now_ns - sent[i - 1].now_ns);
    return gaps;
  }

  Buffer near = a.buffer(8, 1);
  Buffer far = b.buffer(8);
};

bool from_a(const Sent& frame) { return frame.from_a; }
bool from_b(const Sent& frame) { return !frame.from_a; }

}  // namespace

TEST_CASE("The time to wait follows round trips, their variation, and what was not answered") {
  RttEstimator rtt;
  CHECK_FALSE(rtt.known());
  rtt.sample(kMs);
  REQUIRE(rtt.known());
  CHECK(rtt.timeout_ns() == kMs + 4 * kMs / 2);
  rtt.sample(2 * kMs);
  CHECK(rtt.timeout_ns() == 9 * kMs / 8 + 4 * (5 * kMs / 8));
  for (int i = 0; i < 100; ++i) rtt.sample(10 * kUs);
  CHECK(rtt.timeout_ns() == RttEstimator::kFloorNs);
  rtt.back_off();
  rtt.back_off();
  CHECK(rtt.timeout_ns() == 4 * RttEstimator::kFloorNs);
  rtt.ease();
  CHECK(rtt.timeout_ns() == 2 * RttEstimator::kFloorNs);
  for (int i = 0; i < 100; ++i) rtt.back_off();
  CHECK(rtt.timeout_ns() == RttEstimator::kCapNs);
  rtt.sample(10 * kUs);
  CHECK(rtt.timeout_ns() == RttEstimator::kFloorNs);
  rtt.sample(kNever);
  CHECK(rtt.timeout_ns() == RttEstimator::kCapNs);
}

TEST_CASE("A lost message, or its lost ACK, does not wait for the ACK timeout") {
  Warm pair;
  const bool ack = GENERATE(false, true);
  pair.lose_once(ack ? from_b : from_a);
  pair.a.post(write(pair.near, pair.far, 2));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  const std::vector<Sent> sent = pair.sent_by(pair.a, Operation::write_only);
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].now_ns - sent[0].now_ns >= RttEstimator::kFloorNs);
  CHECK(sent[1].now_ns - sent[0].now_ns < 2 * RttEstimator::kFloorNs);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 1);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] == (ack ? 1 : 0));
}

TEST_CASE("A lost NAK does not wait for the ACK timeout") {
  PairOptions options;
  options.mtu_bytes = 256;
  Warm pair(options);
  const Buffer near = pair.a.buffer(200 * 256, 2);
  const Buffer far = pair.b.buffer(200 * 256);
  const uint32_t gap = GENERATE(101u, 120u, 300u);
  bool data_lost = false;
  bool nak_lost = false;
  pair.lose = [&](const Sent& frame) {
    if (frame.from_a) return frame.psn == gap && !std::exchange(data_lost, true);
    return frame.ext.aeth.syndrome == wire::syndrome::kNakSequence &&
           !std::exchange(nak_lost, true);
  };
  const uint64_t begin_ns = pair.fabric.now_ns();
  pair.a.post(write(near, far, 2));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 1);
  // Expect: one probe that may be a duplicate; from where that says, what is missing, once.
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] <= 1);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] <= 302 - gap);
  CHECK(pair.sent.back().now_ns - begin_ns < 2 * kMs);
}

TEST_CASE("The last answer to a READ is asked for again, and only that") {
  PairOptions options;
  options.mtu_bytes = 256;
  Warm pair(options);
  const Buffer into = pair.a.buffer(20 * 256);
  const Buffer from = pair.b.buffer(20 * 256, 3);
  pair.lose_once(
      [](const Sent& frame) { return frame.operation == Operation::read_response_last; });
  pair.a.post(read(into, from, 2));
  pair.drive();
  CHECK(pair.a.bytes(into) == pair.b.bytes(from));
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  const std::vector<Sent> requests = pair.sent_by(pair.a, Operation::read_request);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].ext.reth.length_bytes == 256);
}

TEST_CASE("A lost answer to an atomic is asked for again early") {
  Warm pair;
  const Buffer into = pair.a.buffer(8);
  const Buffer cell = pair.b.buffer(8);
  pair.lose_once(
      [](const Sent& frame) { return frame.operation == Operation::atomic_acknowledge; });
  pair.a.post(fetch_add(into, cell, 7, 2));
  pair.drive();
  CHECK(pair.b.word(cell) == 7);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 1);
}

TEST_CASE("When a request fails is up to the ACK timeout, however often it was sent early") {
  PairOptions options;
  options.retry_count = static_cast<uint8_t>(GENERATE(0, 2));
  Warm pair(options);
  pair.lose = from_a;
  const uint64_t begin_ns = pair.fabric.now_ns();
  uint64_t end_ns = 0;
  pair.a.send_cq.on_push = [&](const Completion&) { end_ns = pair.fabric.now_ns(); };
  pair.a.post(write(pair.near, pair.far, 2));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::retry_exceeded_error});
  const uint64_t patience_ns = ack_timeout_ns(14) * (options.retry_count + 1u);
  CHECK(end_ns - begin_ns >= patience_ns);
  CHECK(end_ns - begin_ns < patience_ns + 100 * kUs);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == options.retry_count + 1u);
  // Each early one came at least twice as late as the one before.
  const std::vector<uint64_t> gaps = pair.gaps_ns();
  REQUIRE(gaps.size() >= 7);
  for (size_t i = 1; i < 7; ++i) CHECK(gaps[i] >= 2 * gaps[i - 1] - 10 * kUs);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] <= 10u);
}

TEST_CASE("With timeout 0 nothing is sent again early") {
  PairOptions options;
  options.timeout = 0;
  Warm pair(options);
  pair.lose = from_a;
  pair.a.post(write(pair.near, pair.far, 2));
  SECTION("from the start") {}
  SECTION("when it was set since") {
    pair.a.attributes.timeout = 0;
    pair.a.modify(QpState::ready_to_send);
  }
  pair.drive();
  CHECK(pair.a.send_cq.completions.empty());
  CHECK(pair.count(pair.a, Operation::write_only) == 1);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

TEST_CASE("Nothing is sent early before a round trip is known") {
  PairOptions options;
  options.timeout = 14;
  Pair pair(options);
  bool lost = false;
  pair.lose = [&](const Sent& frame) { return frame.from_a && !std::exchange(lost, true); };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 1);
}

TEST_CASE("What was sent twice is no measure of the round trip") {
  Warm pair;
  for (uint64_t id = 2; id < 22; id += 2) {
    pair.lose_once(from_a);
    pair.a.post(write(pair.near, pair.far, id));
    pair.run_for(kMs);
    pair.lose = nullptr;
    pair.sent.clear();
    pair.a.post(write(pair.near, pair.far, id + 1));  // ends the back-off
    pair.run_for(kMs);
    CHECK(pair.sent.size() == 2);
  }
  pair.sent.clear();
  pair.lose_once(from_a);
  pair.a.post(write(pair.near, pair.far, 50));
  pair.drive();
  REQUIRE(pair.sent.size() == 3);
  CHECK(pair.gaps_ns()[0] < 5 * RttEstimator::kFloorNs / 4 + 10 * kUs);
}

TEST_CASE("A wait for the receiver is no lateness") {
  PairOptions options;
  options.min_rnr_timer = 20;  // 10.24 ms
  Warm pair(options);
  pair.a.post(send(pair.near, 2));
  pair.a.post(write(pair.near, pair.far, 3));
  pair.run_for(5 * kMs);
  pair.b.receive(1, {pair.b.buffer(8).sge()});
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
}

TEST_CASE("A NIC that was away from its core looks for the answer first") {
  Warm pair;
  pair.lose = from_b;
  pair.a.post(write(pair.near, pair.far, 2));
  pair.run_for(50 * kUs);
  Endpoint& endpoint = pair.a.endpoint();
  const uint64_t back_ns = pair.fabric.now_ns() + 5 * kMs;
  endpoint.on_timeout(back_ns);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 0);
  CHECK(endpoint.next_deadline() >= back_ns + RttEstimator::kFloorNs / 4);
  // A NIC that is always late must get on, too.
  endpoint.on_timeout(back_ns + 5 * kMs);
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 1);
}

TEST_CASE("A probe that was needless costs a packet for each ACK, not the window") {
  PairOptions options;
  options.mtu_bytes = 256;
  Warm pair(options);
  // The path becomes longer than the round trips so far have let expect.
  for (Host* host : {&pair.a, &pair.b})
    pair.fabric.set_link(host->node(), pair.peer_of(*host).node(), {.delay_ns = 150 * kUs});
  const Buffer near = pair.a.buffer(200 * 256, 2);
  const Buffer far = pair.b.buffer(200 * 256);
  pair.a.post(write(near, far, 2));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.counters()[TraceEvent::early_retransmission] == 1);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] <= pair.count(pair.b, Operation::acknowledge));
  CHECK(pair.a.counters()[TraceEvent::retransmitted] < 10);
}

}  // namespace rocemu::transport_test
