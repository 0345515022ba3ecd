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
  CHECK(pair.a.counters().retransmitted_frames == 0);
  CHECK(pair.a.counters().ack_timeouts == 0);
}

}  // namespace rocemu::transport_test
