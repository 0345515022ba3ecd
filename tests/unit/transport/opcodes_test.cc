// Every opcode, segmentation at every path MTU, and the shapes of a payload, on a network that
// loses nothing.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

TEST_CASE("Every opcode moves its data and completes once") {
  Pair pair;
  const Buffer source = pair.a.buffer(3000, 7);
  const Buffer target = pair.b.buffer(3000);
  const Buffer inbox = pair.b.buffer(3000);

  SECTION("SEND") {
    pair.b.receive(50, {inbox.sge()});
    pair.a.post(send(source));
    pair.drive();
    CHECK(pair.b.bytes(inbox) == pair.a.bytes(source));
    REQUIRE(pair.b.receive_cq.completions.size() == 1);
    const Completion& received = pair.b.receive_cq.completions[0];
    CHECK(received.wr_id == 50);
    CHECK(received.opcode == WcOpcode::receive);
    CHECK(received.byte_length == 3000);
    CHECK_FALSE(received.has_immediate);
  }
  SECTION("SEND with immediate") {
    pair.b.receive(50, {inbox.sge()});
    pair.a.post(with_immediate(send(source), 0x11223344));
    pair.drive();
    CHECK(pair.b.bytes(inbox) == pair.a.bytes(source));
    REQUIRE(pair.b.receive_cq.completions.size() == 1);
    CHECK(pair.b.receive_cq.completions[0].has_immediate);
    CHECK(pair.b.receive_cq.completions[0].immediate == 0x11223344);
  }
  SECTION("WRITE") {
    pair.a.post(write(source, target));
    pair.drive();
    CHECK(pair.b.bytes(target) == pair.a.bytes(source));
    CHECK(pair.b.receive_cq.completions.empty());
  }
  SECTION("WRITE with immediate") {
    pair.b.receive(50, {});
    pair.a.post(with_immediate(write(source, target), 9));
    pair.drive();
    CHECK(pair.b.bytes(target) == pair.a.bytes(source));
    REQUIRE(pair.b.receive_cq.completions.size() == 1);
    CHECK(pair.b.receive_cq.completions[0].opcode == WcOpcode::receive_rdma_with_imm);
    CHECK(pair.b.receive_cq.completions[0].byte_length == 3000);
    CHECK(pair.b.receive_cq.completions[0].immediate == 9);
  }
  SECTION("READ") {
    const Buffer far = pair.b.buffer(3000, 8);
    const Buffer into = pair.a.buffer(3000);
    pair.a.post(read(into, far));
    pair.drive();
    CHECK(pair.a.bytes(into) == pair.b.bytes(far));
  }
  SECTION("compare and swap") {
    const Buffer cell = pair.b.buffer(8);
    const Buffer into = pair.a.buffer(8);
    pair.b.set_word(cell, 42);
    pair.a.post(compare_swap(into, cell, 42, 77));
    pair.drive();
    CHECK(pair.a.word(into) == 42);
    CHECK(pair.b.word(cell) == 77);
  }
  SECTION("fetch and add") {
    const Buffer cell = pair.b.buffer(8);
    const Buffer into = pair.a.buffer(8);
    pair.b.set_word(cell, 42);
    pair.a.post(fetch_add(into, cell, 8));
    pair.drive();
    CHECK(pair.a.word(into) == 42);
    CHECK(pair.b.word(cell) == 50);
  }
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.send_queue.released() == 1);
  CHECK(pair.a.counters()[TraceEvent::retransmitted] == 0);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

namespace {

std::vector<Operation> operations(const std::vector<Sent>& sent, bool from_a) {
  std::vector<Operation> result;
  for (const Sent& frame : sent)
    if (frame.from_a == from_a) result.push_back(frame.operation);
  return result;
}

// What a message of `packets` packets looks like.
std::vector<Operation> train(uint32_t packets, Operation only, Operation first, Operation middle,
                             Operation last) {
  if (packets == 1) return {only};
  std::vector<Operation> result(packets, middle);
  result.front() = first;
  result.back() = last;
  return result;
}

}  // namespace

TEST_CASE("Messages are cut at the path MTU") {
  const uint32_t mtu = GENERATE(256u, 512u, 1024u, 2048u, 4096u);
  const auto [bytes, packets] = GENERATE_COPY(table<uint32_t, uint32_t>({{0, 1},
                                                                         {1, 1},
                                                                         {mtu - 1, 1},
                                                                         {mtu, 1},
                                                                         {mtu + 1, 2},
                                                                         {2 * mtu, 2},
                                                                         {3 * mtu - 1, 3},
                                                                         {3 * mtu, 3},
                                                                         {3 * mtu + 1, 4}}));
  PairOptions options;
  options.mtu_bytes = mtu;
  Pair pair(options);
  const Buffer near = pair.a.buffer(bytes, 3);
  const Buffer far = pair.b.buffer(bytes, 4);

  SECTION("SEND") {
    pair.b.receive(1, {far.sge()});
    pair.a.post(send(near));
    pair.drive();
    CHECK(pair.a.bytes(near) == pair.b.bytes(far));
    CHECK(operations(pair.sent, true) == train(packets, Operation::send_only, Operation::send_first,
                                               Operation::send_middle, Operation::send_last));
    CHECK(pair.b.receive_cq.completions.at(0).byte_length == bytes);
  }
  SECTION("WRITE") {
    pair.a.post(write(near, far));
    pair.drive();
    CHECK(pair.a.bytes(near) == pair.b.bytes(far));
    CHECK(operations(pair.sent, true) == train(packets, Operation::write_only,
                                               Operation::write_first, Operation::write_middle,
                                               Operation::write_last));
  }
  SECTION("READ") {
    pair.a.post(read(near, far));
    pair.drive();
    CHECK(pair.a.bytes(near) == pair.b.bytes(far));
    CHECK(operations(pair.sent, true) == std::vector{Operation::read_request});
    CHECK(operations(pair.sent, false) ==
          train(packets, Operation::read_response_only, Operation::read_response_first,
                Operation::read_response_middle, Operation::read_response_last));
  }
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  // The next message has the PSN behind: a READ owns as many as its response has packets.
  pair.a.post(write(pair.a.buffer(1), pair.b.buffer(1)));
  pair.drive();
  CHECK(pair.sent_by(pair.a, Operation::write_only).back().psn == 100 + packets);
}

TEST_CASE("A payload may lie in many pieces, some of them empty") {
  Pair pair;
  const Buffer source = pair.a.buffer(2500, 5);
  const Buffer inbox = pair.b.buffer(2500);
  SendRequest request = send(source);
  request.sges = {source.sge(0, 1),       source.sge(1, 0),    source.sge(1, 1023),
                  source.sge(1024, 1000), source.sge(2024, 0), source.sge(2024, 476)};
  pair.b.receive(1, {inbox.sge(0, 7), inbox.sge(7, 0), inbox.sge(7, 2000), inbox.sge(2007, 400),
                     inbox.sge(2407, 93)});
  pair.a.post(std::move(request));
  pair.drive();
  CHECK(pair.b.bytes(inbox) == pair.a.bytes(source));
}

TEST_CASE("A READ fills its pieces across packets") {
  Pair pair;
  const Buffer far = pair.b.buffer(2500, 5);
  const Buffer into = pair.a.buffer(2500);
  SendRequest request = read(into, far);
  request.sges = {into.sge(0, 3), into.sge(3, 2000), into.sge(2003, 0), into.sge(2003, 497)};
  pair.a.post(std::move(request));
  pair.drive();
  CHECK(pair.a.bytes(into) == pair.b.bytes(far));
}

TEST_CASE("An inline payload is taken from the queue, also when it is sent again") {
  Pair pair;
  const Buffer inbox = pair.b.buffer(100);
  std::vector<std::byte> payload(100, std::byte{0x42});
  pair.b.receive(1, {inbox.sge()});
  int tries = 0;
  pair.lose = [&](const Sent& frame) { return frame.from_a && tries++ == 0; };
  pair.a.post({.wr_id = 1, .opcode = WorkOpcode::send, .inline_payload = payload});
  pair.drive();
  CHECK(pair.b.bytes(inbox) == payload);
  CHECK(pair.count(pair.a, Operation::send_only) == 2);
}

TEST_CASE("Solicited events belong to the last packet of what consumes a receive") {
  Pair pair;
  const Buffer source = pair.a.buffer(2000, 5);
  const Buffer far = pair.b.buffer(2000);
  pair.b.receive(1, {far.sge()});
  for (SendRequest request : {send(source), write(source, far)}) {
    request.solicited = true;
    pair.a.post(std::move(request));
  }
  pair.drive();
  CHECK_FALSE(pair.sent_by(pair.a, Operation::send_first).at(0).solicited);
  CHECK(pair.sent_by(pair.a, Operation::send_last).at(0).solicited);
  CHECK_FALSE(pair.sent_by(pair.a, Operation::write_last).at(0).solicited);
  CHECK(pair.b.receive_cq.completions.at(0).solicited);
}

TEST_CASE("Unsignalled requests are released without a completion") {
  Pair pair;
  const Buffer source = pair.a.buffer(10, 5);
  const Buffer far = pair.b.buffer(10);
  pair.a.post(unsignaled(write(source, far, 1)));
  pair.a.post(write(source, far, 2));
  pair.a.post(unsignaled(write(source, far, 3)));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{2});
  CHECK(pair.a.send_queue.released() == 3);
}

}  // namespace rocemu::transport_test
