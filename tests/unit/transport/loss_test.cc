// Loss, time, and what is sent again: ACK timeouts, sequence and implied NAKs, go-back-N, RNR.
#include <catch2/catch.hpp>

#include "emulator/transport/qp/rc_tables.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

bool is_request(const Sent& frame) { return frame.from_a; }

std::vector<uint32_t> psns(const std::vector<Sent>& sent) {
  std::vector<uint32_t> result;
  for (const Sent& frame : sent) result.push_back(frame.psn);
  return result;
}

}  // namespace

TEST_CASE("A request nobody answers is sent once and retry_count times more") {
  PairOptions options;
  options.retry_count = static_cast<uint8_t>(GENERATE(0, 1, 3, 7));
  Pair pair(options);
  pair.lose = [](const Sent&) { return true; };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::retry_exceeded_error});
  const std::vector<Sent> sent = pair.sent_by(pair.a, Operation::write_only);
  REQUIRE(sent.size() == options.retry_count + 1u);
  for (size_t i = 1; i < sent.size(); ++i)
    CHECK(sent[i].now_ns - sent[i - 1].now_ns >= ack_timeout_ns(options.timeout));
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == options.retry_count + 1u);
  CHECK(pair.a.state() == QpState::error);
}

TEST_CASE("Timeout 0 waits for ever") {
  PairOptions options;
  options.timeout = 0;
  Pair pair(options);
  pair.lose = [](const Sent&) { return true; };
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(pair.a.send_cq.completions.empty());
  CHECK(pair.count(pair.a, Operation::write_only) == 1);
}

TEST_CASE("A gap draws one NAK, and sending starts again at the gap") {
  PairOptions options;
  options.mtu_bytes = 256;
  Pair pair(options);
  const Buffer near = pair.a.buffer(10 * 256, 1);
  const Buffer far = pair.b.buffer(10 * 256);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    return is_request(frame) && frame.psn == 103 && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(pair.b.counters()[TraceEvent::sequence_nak_sent] == 1);
  CHECK(pair.b.counters()[TraceEvent::out_of_sequence] == 6);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 7);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  std::vector<uint32_t> all;
  for (const Sent& frame : pair.sent)
    if (is_request(frame)) all.push_back(frame.psn);
  CHECK(all == std::vector<uint32_t>{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 103, 104,
                                     105, 106, 107, 108, 109});
}

TEST_CASE("A NAK that comes twice costs one retry, and one loss of the window") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.retry_count = 1;
  Pair pair(options);
  const Buffer near = pair.a.buffer(10 * 256, 1);
  const Buffer far = pair.b.buffer(10 * 256);
  pair.a.post(write(near, far));
  pair.drive();  // a round trip is known then
  std::optional<uint32_t> nak;
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    if (!frame.from_a && frame.ext.aeth.syndrome == wire::syndrome::kNakSequence) nak = frame.psn;
    return is_request(frame) && frame.psn == 113 && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far, 2));
  while (!nak) pair.run_for(1);
  wire::ExtendedHeaders ext;
  ext.aeth.syndrome = wire::syndrome::kNakSequence;
  for (int i = 0; i < 3; ++i) pair.inject(pair.a, Operation::acknowledge, *nak, ext);
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
  CHECK(pair.a.counters()[TraceEvent::sequence_nak_received] == 4);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 7);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

TEST_CASE("A lost ACK is answered by the next one, or after the timeout") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  bool lost = false;
  pair.lose = [&](const Sent& frame) { return !frame.from_a && !std::exchange(lost, true); };
  pair.a.post(write(near, far, 1));
  SECTION("the next one") {
    pair.run_for(100 * kUs);
    pair.a.post(write(near, far, 2));
    pair.drive();
    CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
  }
  SECTION("the timeout") {
    pair.drive();
    CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 1);
    // Expect: acknowledged again, not executed again.
    CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 1);
    CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  }
}

TEST_CASE("A SEND whose ACK is lost consumes one receive") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  for (uint64_t id : {1, 2}) pair.b.receive(id, {pair.b.buffer(8).sge()});
  bool lost = false;
  pair.lose = [&](const Sent& frame) { return !frame.from_a && !std::exchange(lost, true); };
  pair.a.post(send(near));
  pair.drive();
  CHECK(pair.count(pair.a, Operation::send_only) == 2);
  CHECK(pair.b.receive_cq.completions.size() == 1);
}

TEST_CASE("A READ goes on where its response broke off") {
  PairOptions options;
  options.mtu_bytes = 256;
  Pair pair(options);
  const Buffer far = pair.b.buffer(5 * 256, 9);
  const Buffer into = pair.a.buffer(5 * 256);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    return !frame.from_a && frame.psn == 102 && !std::exchange(lost, true);
  };
  pair.a.post(read(into, far));
  pair.drive();
  CHECK(pair.a.bytes(into) == pair.b.bytes(far));
  // Expect: the response behind the gap is taken for a NAK; the rest is asked for.
  CHECK(pair.a.counters()[TraceEvent::implied_nak] == 1);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  const std::vector<Sent> requests = pair.sent_by(pair.a, Operation::read_request);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].psn == 102);
  CHECK(requests[1].ext.reth.virtual_address == far.address + 2 * 256);
  CHECK(requests[1].ext.reth.length_bytes == 3 * 256);
}

TEST_CASE("An ACK behind an unanswered READ is an implied NAK") {
  Pair pair;
  const Buffer far = pair.b.buffer(8, 9);
  const Buffer into = pair.a.buffer(8);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    return frame.operation == Operation::read_response_only && !std::exchange(lost, true);
  };
  pair.a.post(read(into, far, 1));
  pair.a.post(write(pair.a.buffer(8, 1), pair.b.buffer(8), 2));
  pair.drive();
  CHECK(pair.a.bytes(into) == pair.b.bytes(far));
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(pair.a.counters()[TraceEvent::implied_nak] == 1);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

TEST_CASE("An atomic whose answer is lost is answered from the stored result") {
  Pair pair;
  const Buffer cell = pair.b.buffer(8);
  const Buffer into = pair.a.buffer(8);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    return frame.operation == Operation::atomic_acknowledge && !std::exchange(lost, true);
  };
  pair.b.set_word(cell, 40);
  pair.a.post(fetch_add(into, cell, 2));
  pair.drive();
  CHECK(pair.a.word(into) == 40);
  CHECK(pair.b.word(cell) == 42);
  CHECK(pair.count(pair.b, Operation::atomic_acknowledge) == 2);
}

TEST_CASE("Progress gives the retries back") {
  PairOptions options;
  options.retry_count = 1;
  Pair pair(options);
  const Buffer near = pair.a.buffer(8, 1);
  // Every request is lost once.
  std::vector<uint32_t> seen;
  pair.lose = [&](const Sent& frame) {
    if (!frame.from_a || std::ranges::find(seen, frame.psn) != seen.end()) return false;
    seen.push_back(frame.psn);
    return true;
  };
  for (uint64_t id = 1; id <= 5; ++id) {
    pair.a.post(write(near, pair.b.buffer(8), id));
    pair.drive();
  }
  CHECK(statuses(pair.a.send_cq) == std::vector<WcStatus>(5, WcStatus::success));
}

TEST_CASE("A receiver that is not ready is asked again after its time") {
  PairOptions options;
  options.min_rnr_timer = 12;  // 640 us
  options.rnr_retry = static_cast<uint8_t>(GENERATE(3, 7));
  Pair pair(options);
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer inbox = pair.b.buffer(8);
  pair.a.post(send(near, 1));
  pair.a.post(write(near, pair.b.buffer(8), 2));
  pair.run_for(1000 * kUs);
  pair.b.receive(5, {inbox.sge()});
  pair.drive();
  CHECK(pair.b.bytes(inbox) == pair.a.bytes(near));
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
  const std::vector<Sent> sent = pair.sent_by(pair.a, Operation::send_only);
  REQUIRE(sent.size() == 3);
  CHECK(sent[1].now_ns - sent[0].now_ns >= rnr_timer_ns(12));
  // Expect: the WRITE behind it was dropped without a NAK of its own, no ACK timer ran.
  CHECK(pair.b.counters()[TraceEvent::sequence_nak_sent] == 0);
  CHECK(pair.b.counters()[TraceEvent::rnr_nak_sent] == 2);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  const uint8_t syndrome = pair.sent_by(pair.b, Operation::acknowledge).at(0).ext.aeth.syndrome;
  CHECK(syndrome == (wire::syndrome::kRnr | 12));
}

TEST_CASE("RNR retries are counted on their own") {
  PairOptions options;
  options.rnr_retry = static_cast<uint8_t>(GENERATE(0, 2, 6));
  options.retry_count = 0;
  Pair pair(options);
  pair.a.post(send(pair.a.buffer(8, 1)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::rnr_retry_exceeded_error});
  CHECK(pair.count(pair.a, Operation::send_only) == options.rnr_retry + 1u);
  CHECK(pair.a.state() == QpState::error);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A receiver that says again and again that it is not ready is there") {
  PairOptions options;
  options.rnr_retry = 7;  // for ever
  options.retry_count = 1;
  Pair pair(options);
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer inbox = pair.b.buffer(8);
  // Every second SEND is lost, so that the WRITE behind it is answered by a sequence NAK.
  uint32_t sends = 0;
  pair.lose = [&](const Sent& frame) {
    return frame.operation == Operation::send_only && ++sends % 2 == 0;
  };
  pair.a.post(send(near, 1));
  pair.a.post(write(near, pair.b.buffer(8), 2));
  pair.run_for(500 * kMs);
  CHECK(pair.a.counters()[TraceEvent::sequence_nak_received] > 0);
  // After some losses one packet is in flight, and no NAK tells of the next one.
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] > 10);
  CHECK(pair.a.state() == QpState::ready_to_send);
  pair.b.receive(5, {inbox.sge()});
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
  CHECK(pair.b.bytes(inbox) == pair.a.bytes(near));
}

TEST_CASE("An ACK that comes during an RNR wait starts no ACK timer") {
  PairOptions options;
  options.min_rnr_timer = 20;  // 10.24 ms, longer than the ACK timeout
  options.retry_count = 0;
  Pair pair(options);
  const Buffer near = pair.a.buffer(8, 1);
  pair.a.post(send(near, 1));
  pair.a.post(write(near, pair.b.buffer(8), 2));
  pair.run_for(100 * kUs);
  CHECK(pair.b.counters()[TraceEvent::rnr_nak_sent] == 1);
  // A copy of the SEND that the network has kept finds a receive.
  pair.b.receive(1, {pair.b.buffer(8).sge()});
  pair.inject(pair.b, Operation::send_only, 100, {}, std::vector<std::byte>(8));
  pair.run_for(5 * kMs);
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1});
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
}

TEST_CASE("ACKs of a burst are one") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  for (uint64_t id = 1; id <= 20; ++id) pair.a.post(write(near, far, id));
  pair.drive();
  CHECK(pair.a.send_cq.completions.size() == 20);
  CHECK(pair.count(pair.b, Operation::acknowledge) <= 2);
}

TEST_CASE("A long message asks for ACKs on its way, also in a small window") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.timeout = 0;
  options.node.limits.window_packets = GENERATE(1u, 2u, 5u, 16u, 256u);
  Pair pair(options);
  const Buffer near = pair.a.buffer(100 * 256, 1);
  const Buffer far = pair.b.buffer(100 * 256);
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  const uint32_t spacing =
      std::min(options.node.limits.window_packets, options.node.limits.ack_interval_packets);
  CHECK(pair.count(pair.b, Operation::acknowledge) >= 100 / std::max(spacing, 32u));
}

TEST_CASE("A fence waits for READs and atomics before it") {
  Pair pair;
  const Buffer into = pair.a.buffer(8);
  const Buffer far = pair.b.buffer(8, 9);
  const Buffer near = pair.a.buffer(8, 1);
  pair.lose = [](const Sent& frame) { return frame.operation == Operation::read_response_only; };
  pair.a.post(read(into, far, 1));
  const bool fence = GENERATE(true, false);
  pair.a.post(fence ? fenced(write(near, far, 2)) : write(near, far, 2));
  pair.run_for(500 * kUs);
  CHECK((pair.count(pair.a, Operation::write_only) == 0) == fence);
  pair.lose = nullptr;
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2});
}

TEST_CASE("No more READs are under way than max_rd_atomic") {
  PairOptions options;
  options.max_rd_atomic = 2;
  Pair pair(options);
  pair.lose = [](const Sent& frame) { return !frame.from_a; };
  for (uint64_t id = 1; id <= 5; ++id) pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8, 1), id));
  pair.run_for(100 * kUs);
  CHECK(psns(pair.sent_by(pair.a, Operation::read_request)) == std::vector<uint32_t>{100, 101});
  pair.lose = nullptr;
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector<WcStatus>(5, WcStatus::success));
}

TEST_CASE("PSNs wrap") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.a_psn = 0xfffffe;
  options.b_psn = 0xffffff;
  Pair pair(options);
  const Buffer near = pair.a.buffer(8 * 256, 1);
  const Buffer far = pair.b.buffer(8 * 256);
  const Buffer into = pair.a.buffer(8 * 256);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    return frame.from_a && frame.psn == 1 && !std::exchange(lost, true);
  };
  pair.a.post(write(near, far, 1));
  pair.a.post(read(into, far, 2));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(pair.a.bytes(into) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
}

}  // namespace rocemu::transport_test
