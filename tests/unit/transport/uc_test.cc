#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

PairOptions unreliable() {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  return options;
}

}  // namespace

TEST_CASE("UC carries SEND and WRITE, with and without immediate, without an answer") {
  Pair pair(unreliable());
  const Buffer data = pair.a.buffer(5000, 1);
  const Buffer room = pair.b.buffer(5000);
  const Buffer target = pair.b.buffer(5000);
  pair.b.receive(1, {room.sge()});
  pair.b.receive(2, {});
  pair.a.post(with_immediate(send(data, 1), 5));
  pair.a.post(write(data, target, 2));
  pair.a.post(with_immediate(write(data, target, 3), 6));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(3, WcStatus::success));
  REQUIRE(pair.b.receive_cq.completions.size() == 2);
  CHECK(pair.b.receive_cq.completions[0].byte_length == 5000);
  CHECK(pair.b.receive_cq.completions[0].immediate == 5);
  CHECK(pair.b.receive_cq.completions[1].opcode == WcOpcode::receive_rdma_with_imm);
  CHECK(pair.b.receive_cq.completions[1].immediate == 6);
  CHECK(pair.b.bytes(room) == pair.a.bytes(data));
  CHECK(pair.b.bytes(target) == pair.a.bytes(data));
  CHECK(pair.count(pair.b, Operation::acknowledge) == 0);
}

TEST_CASE("A UC message that loses a packet is lost whole, and the next one arrives") {
  const Operation lost =
      GENERATE(Operation::send_first, Operation::send_middle, Operation::send_last);
  Pair pair(unreliable());
  bool done = false;
  pair.lose = [&](const Sent& frame) {
    const bool now = !done && frame.operation == lost;
    done = done || now;
    return now;
  };
  const Buffer first = pair.a.buffer(4000, 1);
  const Buffer second = pair.a.buffer(4000, 2);
  const Buffer room = pair.b.buffer(4000);
  pair.b.receive(1, {room.sge()});
  pair.a.post(send(first, 1));
  pair.a.post(send(second, 2));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(2, WcStatus::success));
  CHECK(statuses(pair.b.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(room) == pair.a.bytes(second));
}

TEST_CASE("A UC packet that comes twice begins no second message") {
  Pair pair(unreliable());
  pair.b.receive(1, {pair.b.buffer(100).sge()});
  pair.b.receive(2, {pair.b.buffer(100).sge()});
  const std::vector<std::byte> payload(8);
  for (int i = 0; i < 2; ++i) pair.inject(pair.b, Operation::send_only, 100, {}, payload);
  pair.drive();
  CHECK(pair.b.receive_cq.completions.size() == 1);
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 1);
  // One from far away is the peer beginning anew.
  pair.inject(pair.b, Operation::send_only, 0x800000, {}, payload);
  pair.drive();
  CHECK(pair.b.receive_cq.completions.size() == 2);
}

TEST_CASE("What UC may not execute is dropped with its whole message") {
  Pair pair(unreliable());
  const Buffer data = pair.a.buffer(3000, 1);
  const Buffer target = pair.b.buffer(3000);
  Buffer closed = target;
  closed.key = pair.b.node().memory().register_region(1, target.address, 3000, kLocalWrite);
  pair.a.post(send(data, 1));           // no receive
  pair.a.post(write(data, closed, 2));  // no right
  pair.drive();
  CHECK(pair.b.counters()[TraceEvent::no_receive] == 1);
  const Buffer room = pair.b.buffer(3000);
  pair.b.receive(1, {room.sge(0, 2000)});
  pair.a.post(send(data, 3));  // too long
  Buffer shorter = data;
  shorter.length_bytes = 2000;
  pair.a.post(send(shorter, 4));
  pair.a.post(write(data, target, 5));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(5, WcStatus::success));
  CHECK(pair.b.receive_cq.completions.size() == 1);
  CHECK(pair.b.bytes(target) == pair.a.bytes(data));
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("UC has no READ and no atomics") {
  Pair pair(unreliable());
  const Buffer data = pair.a.buffer(8);
  pair.a.post(read(data, pair.b.buffer(8)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_qp_operation_error});
  CHECK(pair.a.state() == QpState::send_queue_error);
  CHECK(pair.sent.empty());
}

TEST_CASE("A UC message whose memory goes away fails when what stood before it has left") {
  Pair pair(unreliable());
  const Buffer data = pair.a.buffer(2000, 1);
  const Buffer gone = pair.a.buffer(2000, 1);
  pair.a.node().memory().break_region(gone.key);
  pair.b.receive(1, {pair.b.buffer(2000).sge()});
  pair.b.receive(2, {pair.b.buffer(2000).sge()});
  pair.a.post(send(data, 1));
  pair.a.post(send(gone, 2));
  pair.a.post(send(data, 3));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(wr_ids(pair.b.receive_cq) == std::vector<uint64_t>{1});
}

TEST_CASE("SQD of UC drains and says so") {
  Pair pair(unreliable());
  pair.a.attributes.notify_drained = true;
  pair.a.modify(QpState::send_queue_drain);
  const Buffer data = pair.a.buffer(100, 1);
  pair.a.post(send(data, 1));
  pair.drive();
  CHECK(pair.a.had_event(QpEvent::send_queue_drained));
  CHECK(pair.a.send_cq.completions.empty());
  pair.a.modify(QpState::ready_to_send);
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1});
}
