#include <catch2/catch.hpp>
#include <utility>

#include "tests/unit/transport/pair.h"

using namespace rocemu::transport_test;
using namespace rocemu;

namespace {

// A word of `host` that holds `value`.
Buffer word_of(Host& host, uint64_t value, uint32_t access = kLocalWrite) {
  const Buffer word = host.buffer(8, 0, access);
  host.set_word(word, value);
  return word;
}

}  // namespace

TEST_CASE("An ATOMIC WRITE is one packet, answered by a READ response without data") {
  Pair pair;
  const Buffer cell = pair.b.buffer(8);
  pair.a.post(atomic_write(word_of(pair.a, 77), cell));
  pair.drive();
  CHECK(pair.b.word(cell) == 77);
  REQUIRE(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.a.send_cq.completions[0].opcode == WcOpcode::atomic_write);
  CHECK(pair.a.send_cq.completions[0].byte_length == 8);
  const std::vector<Sent> requests = pair.sent_by(pair.a, Operation::atomic_write);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].ext.reth.length_bytes == 8);
  CHECK(pair.count(pair.b, Operation::read_response_only) == 1);
  CHECK(pair.count(pair.b, Operation::acknowledge) == 0);
}

TEST_CASE("An ATOMIC WRITE keeps its place among other requests") {
  Pair pair;
  const Buffer cell = pair.b.buffer(8);
  pair.b.set_word(cell, 1);
  const Buffer first = pair.a.buffer(8), second = pair.a.buffer(8), after = pair.a.buffer(8);
  pair.a.post(fetch_add(first, cell, 1, 1));
  pair.a.post(atomic_write(word_of(pair.a, 40), cell, 2));
  pair.a.post(fetch_add(second, cell, 2, 3));
  pair.a.post(fenced(read(after, cell, 4)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(4, WcStatus::success));
  CHECK(pair.a.word(first) == 1);
  CHECK(pair.a.word(second) == 40);
  CHECK(pair.a.word(after) == 42);
}

TEST_CASE("An ATOMIC WRITE whose answer is lost is answered again and not executed again") {
  Pair pair;
  const Buffer cell = pair.b.buffer(8);
  bool lost = false;
  pair.lose = [&](const Sent& frame) {
    if (frame.operation != Operation::read_response_only || std::exchange(lost, true)) return false;
    pair.b.set_word(cell, 5);  // somebody else writes meanwhile
    return true;
  };
  pair.a.post(atomic_write(word_of(pair.a, 77), cell));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.word(cell) == 5);
  CHECK(pair.count(pair.b, Operation::read_response_only) == 2);
}

TEST_CASE("Only as many ATOMIC WRITEs are under way as the peer takes") {
  PairOptions options;
  options.max_rd_atomic = 1;
  Pair pair(options);
  const Buffer cell = pair.b.buffer(8);
  for (uint64_t i = 1; i <= 4; ++i) pair.a.post(atomic_write(word_of(pair.a, i), cell, i));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector(4, WcStatus::success));
  CHECK(pair.b.word(cell) == 4);
}

TEST_CASE("An ATOMIC WRITE needs the right to write, and an aligned address") {
  PairOptions options;
  SECTION("of the region") {
    Pair pair;
    pair.a.post(atomic_write(word_of(pair.a, 1), pair.b.buffer(8, 0, kLocalWrite)));
    expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
               QpEvent::access_error);
  }
  SECTION("of the QP") {
    options.access = kRemoteRead | kRemoteAtomic;
    Pair pair(options);
    pair.a.post(atomic_write(word_of(pair.a, 1), pair.b.buffer(8)));
    expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
               QpEvent::request_error);
  }
  SECTION("aligned") {
    Pair pair;
    Buffer cell = pair.b.buffer(16);
    cell.address += 4;
    pair.a.post(atomic_write(word_of(pair.a, 1), cell));
    expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
               QpEvent::request_error);
  }
}

TEST_CASE("An ATOMIC WRITE that is malformed on the wire is refused") {
  Pair pair;
  const Buffer cell = pair.b.buffer(16);
  wire::ExtendedHeaders ext;
  ext.reth = {cell.address, wire::RKey{cell.key}, 8};
  std::vector<std::byte> payload(8, std::byte{1});
  SECTION("with another length in its header") { ext.reth.length_bytes = 16; }
  SECTION("with less data") { payload.resize(4); }
  SECTION("without data") { payload.clear(); }
  pair.inject(pair.b, Operation::atomic_write, kPsn, ext, payload);
  pair.drive();
  CHECK(pair.sent_by(pair.b, Operation::acknowledge).back().ext.aeth.syndrome ==
        wire::syndrome::kNakInvalidRequest);
  CHECK(pair.b.word(cell) == 0);
}

TEST_CASE("There is no ATOMIC WRITE over XRC") {
  PairOptions options;
  options.a_service = Service::xrc_send;
  options.b_service = Service::xrc_receive;
  Pair pair(options);
  pair.a.post(atomic_write(word_of(pair.a, 1), pair.b.buffer(8)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_qp_operation_error});
  CHECK(pair.sent.empty());
}
