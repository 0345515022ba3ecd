// Receives that do not belong to the QP: SRQs and XRC.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

PairOptions xrc() {
  PairOptions options;
  options.a_service = Service::xrc_send;
  options.b_service = Service::xrc_receive;
  return options;
}

SendRequest to_srq(SendRequest request, uint32_t number = 7) {
  request.remote_srq = wire::Qpn{number};
  return request;
}

}  // namespace

TEST_CASE("A QP in ERROR leaves its SRQ as it is, and says that it takes no more") {
  PairOptions options;
  options.a_shares_receives = true;
  Pair pair(options);
  pair.a.receive(1, {pair.a.buffer(100).sge()});
  pair.a.receive(2, {pair.a.buffer(100).sge()});
  pair.b.post(send(pair.b.buffer(50, 1)));
  pair.drive();
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{1});
  pair.a.modify(QpState::error);
  pair.a.receive(3, {pair.a.buffer(100).sge()});
  pair.drive();
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{1});
  CHECK(pair.a.had_event(QpEvent::last_wqe_reached));
  ReceiveWork next;
  REQUIRE(pair.a.receive_queue.pop(next));
  CHECK(next.wr_id == 2);
}

TEST_CASE("The receive of an SRQ that is under way is flushed with its QP") {
  PairOptions options;
  options.a_shares_receives = true;
  Pair pair(options);
  pair.a.receive(1, {pair.a.buffer(3000).sge()});
  pair.lose = [](const Sent& frame) { return frame.operation != Operation::send_first; };
  pair.b.post(send(pair.b.buffer(3000, 1)));
  pair.run_for(100 * kUs);
  pair.a.modify(QpState::error);
  CHECK(statuses(pair.a.receive_cq) == std::vector{WcStatus::flush_error});
}

TEST_CASE("A datagram that does not fit its receive costs an SRQ that receive") {
  PairOptions options;
  options.a_service = options.b_service = Service::ud;
  options.a_shares_receives = true;
  Pair pair(options);
  pair.a.receive(1, {pair.a.buffer(139).sge()});
  pair.a.receive(2, {pair.a.buffer(140).sge()});
  const Buffer data = pair.b.buffer(100, 1);
  pair.b.post(datagram(data, pair.a));
  pair.b.post(datagram(data, pair.a));
  pair.drive();
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.a.receive_cq) ==
        std::vector{WcStatus::remote_invalid_request_error, WcStatus::success});
  CHECK(pair.a.state() == QpState::ready_to_send);
}

TEST_CASE("A message over UC that is dropped costs an SRQ its receive") {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  options.a_shares_receives = true;
  Pair pair(options);
  pair.a.receive(1, {pair.a.buffer(3000).sge()});
  pair.a.receive(2, {pair.a.buffer(3000).sge()});
  SECTION("too long") { pair.b.post(send(pair.b.buffer(3001, 1))); }
  SECTION("without its end") {
    pair.lose = [lost = false](const Sent& frame) mutable {
      return frame.operation == Operation::send_last && !std::exchange(lost, true);
    };
    pair.b.post(send(pair.b.buffer(3000, 1)));
  }
  pair.b.post(send(pair.b.buffer(2000, 2)));
  pair.drive();
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.a.receive_cq) ==
        std::vector{WcStatus::remote_invalid_request_error, WcStatus::success});
  CHECK(pair.a.state() == QpState::ready_to_send);
}

TEST_CASE("XRC takes its receives from the SRQ that the request names") {
  Pair pair(xrc());
  const Buffer data = pair.a.buffer(3000, 1);
  const Buffer room = pair.b.buffer(3000);
  pair.b.receive(4, {room.sge()});
  pair.a.post(to_srq(send(data)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{4});
  CHECK(pair.b.bytes(room) == pair.a.bytes(data));
  for (const Sent& frame : pair.sent)
    if (frame.from_a) CHECK(frame.ext.xrc_srq.value == 7);
}

TEST_CASE("XRC writes, reads and does atomics in the SRQ's protection domain") {
  Pair pair(xrc());
  const Buffer data = pair.a.buffer(3000, 1);
  const Buffer into = pair.a.buffer(3000);
  const Buffer target = pair.b.buffer(3000);
  const Buffer cell = pair.b.buffer(8);
  pair.b.set_word(cell, 40);
  const Buffer answer = pair.a.buffer(8);
  pair.a.post(to_srq(write(data, target, 1)));
  pair.a.post(to_srq(read(into, target, 2)));
  pair.a.post(to_srq(fetch_add(answer, cell, 2, 3)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(3, WcStatus::success));
  CHECK(pair.b.bytes(target) == pair.a.bytes(data));
  CHECK(pair.a.bytes(into) == pair.a.bytes(data));
  CHECK(pair.a.word(answer) == 40);
  CHECK(pair.b.word(cell) == 42);
}

TEST_CASE("A request to an SRQ that is not there is an invalid request") {
  Pair pair(xrc());
  const Buffer data = pair.a.buffer(3000, 1);
  SECTION("a wrong number") { pair.a.post(to_srq(send(data), 8)); }
  SECTION("destroyed in the middle of a message") {
    pair.b.receive(1, {pair.b.buffer(3000).sge()});
    pair.lose = [&](const Sent& frame) {
      if (frame.operation == Operation::send_last) pair.b.domain.receiver = {};
      return false;
    };
    pair.a.post(to_srq(send(data)));
  }
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::remote_invalid_request_error});
  CHECK(pair.b.receive_cq.completions.empty());
  CHECK(pair.b.state() == QpState::error);
}

TEST_CASE("The packets of one XRC message name one SRQ") {
  Pair pair(xrc());
  pair.b.receive(1, {pair.b.buffer(3000).sge()});
  const std::vector<std::byte> whole(1024);
  wire::ExtendedHeaders ext;
  ext.xrc_srq = wire::Qpn{7};
  pair.inject(pair.b, Operation::send_first, 100, ext, whole);
  ext.xrc_srq = wire::Qpn{8};
  pair.inject(pair.b, Operation::send_last, 101, ext, whole);
  pair.drive();
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::flush_error});
  CHECK(pair.b.state() == QpState::error);
}

TEST_CASE("An XRC SEND without a receive is RNR") {
  Pair pair(xrc());
  const Buffer room = pair.b.buffer(100);
  pair.a.post(to_srq(send(pair.a.buffer(50, 1))));
  pair.run_for(30 * kUs);
  pair.b.receive(1, {room.sge()});
  pair.drive();
  CHECK(pair.b.counters()[TraceEvent::rnr_nak_sent] > 0);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}
