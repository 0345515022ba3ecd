// Every error that ends a connection: the NAK, the status at the requester, the receive's status
// and the event at the responder.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

TEST_CASE("A responder refuses what a key does not grant") {
  Pair pair;
  const Buffer near = pair.a.buffer(16, 1);
  Buffer far = pair.b.buffer(16, 2, kLocalWrite);
  SECTION("WRITE without the right") { pair.a.post(write(near, far)); }
  SECTION("READ without the right") { pair.a.post(read(near, far)); }
  SECTION("atomic without the right") {
    pair.a.post(fetch_add(pair.a.buffer(8), pair.b.buffer(8, 1, kLocalWrite), 1));
  }
  SECTION("WRITE with an unknown key") {
    far.key = 77;
    pair.a.post(write(near, far));
  }
  SECTION("WRITE beyond the end") {
    Buffer open = pair.b.buffer(15, 2);
    pair.a.post(write(near, open));
  }
  SECTION("READ before the start") {
    Buffer open = pair.b.buffer(64, 2);
    open.address -= 1;
    pair.a.post(read(near, open));
  }
  SECTION("an address that wraps") {
    Buffer open = pair.b.buffer(64, 2);
    open.address = ~uint64_t{0} - 7;
    pair.a.post(write(near, open));
  }
  expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess,
             QpEvent::access_error);
}

TEST_CASE(
    "A WRITE with immediate that is refused its target ends the receive with an access error") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8, 0, kLocalWrite);
  SendRequest request = with_immediate(write(near, far), 7);
  std::optional<QpEvent> event;
  std::vector<WcStatus> received;
  SECTION("a receive is posted") {
    for (const uint64_t id : {1, 2}) pair.b.receive(id, {pair.b.buffer(8).sge()});
    received = {WcStatus::local_access_error, WcStatus::flush_error};
  }
  SECTION("none is posted") { event = QpEvent::access_error; }
  pair.a.post(std::move(request));
  expect_nak(pair, WcStatus::remote_access_error, wire::syndrome::kNakRemoteAccess, event);
  CHECK(statuses(pair.b.receive_cq) == received);
}

TEST_CASE("A responder refuses what the QP does not allow") {
  PairOptions options;
  options.access = 0;
  Pair pair(options);
  const Buffer near = pair.a.buffer(8, 1);
  const Buffer far = pair.b.buffer(8);
  SECTION("WRITE") { pair.a.post(write(near, far)); }
  SECTION("READ") { pair.a.post(read(near, far)); }
  SECTION("atomic") { pair.a.post(compare_swap(near, far, 1, 2)); }
  expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
             QpEvent::request_error);
  CHECK(pair.b.bytes(far) == std::vector<std::byte>(8));
}

TEST_CASE("An atomic needs an aligned address") {
  Pair pair;
  Buffer cell = pair.b.buffer(16);
  cell.address += 4;
  pair.a.post(fetch_add(pair.a.buffer(8), cell, 1));
  expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
             QpEvent::request_error);
}

TEST_CASE("A zero-length WRITE or READ needs no key") {
  Pair pair;
  const Buffer nothing = pair.a.buffer(0);
  Buffer far = pair.b.buffer(0);
  far.key = 77;
  pair.a.post(write(nothing, far));
  pair.a.post(read(nothing, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, WcStatus::success});
}

TEST_CASE("A receive that does not fit its message") {
  Pair pair;
  const Buffer near = pair.a.buffer(3000, 1);
  WcStatus received = WcStatus::success;
  SECTION("too short") {
    pair.b.receive(1, {pair.b.buffer(2999).sge()});
    pair.a.post(send(near));
    received = WcStatus::local_length_error;
    expect_nak(pair, WcStatus::remote_invalid_request_error, wire::syndrome::kNakInvalidRequest,
               std::nullopt);
  }
  SECTION("its key does not allow it") {
    pair.b.receive(1, {pair.b.buffer(3000, 0, kLocalRead).sge()});
    pair.a.post(send(near));
    received = WcStatus::local_protection_error;
    expect_nak(pair, WcStatus::remote_operation_error, wire::syndrome::kNakRemoteOperation,
               std::nullopt);
  }
  SECTION("malformed") {
    pair.b.receive_queue.post({.wr_id = 1, .fault = WcStatus::local_qp_operation_error});
    pair.a.post(send(near));
    received = WcStatus::local_qp_operation_error;
    expect_nak(pair, WcStatus::remote_operation_error, wire::syndrome::kNakRemoteOperation,
               std::nullopt);
  }
  CHECK(statuses(pair.b.receive_cq) == std::vector{received});
}

TEST_CASE("What is wrong at the requester costs no packet and waits for what came before") {
  Pair pair;
  const Buffer near = pair.a.buffer(16, 1);
  const Buffer far = pair.b.buffer(16);
  pair.a.post(write(near, far, 1));
  WcStatus expected = WcStatus::local_protection_error;
  SECTION("unknown key") {
    SendRequest request = write(near, far, 2);
    request.sges[0].lkey.value = 77;
    pair.a.post(std::move(request));
  }
  SECTION("READ into memory that may not be written") {
    pair.a.post(read(pair.a.buffer(16, 0, kLocalRead), far, 2));
  }
  SECTION("malformed") {
    expected = WcStatus::local_qp_operation_error;
    SendRequest request = write(near, far, 2);
    request.fault = expected;
    pair.a.post(std::move(request));
  }
  pair.a.post(write(near, far, 3));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, expected, WcStatus::flush_error});
  CHECK(pair.sent_by(pair.a, Operation::write_only).size() == 1);
  CHECK(pair.count(pair.a, Operation::read_request) == 0);
  CHECK(pair.a.state() == QpState::error);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

TEST_CASE("A READ without READs in flight allowed is refused here") {
  PairOptions options;
  options.max_rd_atomic = 0;
  Pair pair(options);
  pair.a.post(read(pair.a.buffer(8), pair.b.buffer(8)));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::local_qp_operation_error});
}

TEST_CASE("NAK codes of a peer become statuses") {
  Pair pair;
  pair.lose = [](const Sent&) { return true; };
  const auto [syndrome, status] = GENERATE(table<uint8_t, WcStatus>(
      {{wire::syndrome::kNakInvalidRequest, WcStatus::remote_invalid_request_error},
       {wire::syndrome::kNakRemoteAccess, WcStatus::remote_access_error},
       {wire::syndrome::kNakRemoteOperation, WcStatus::remote_operation_error},
       {wire::syndrome::kNakInvalidRdRequest, WcStatus::remote_operation_error}}));
  const Buffer near = pair.a.buffer(8, 1);
  for (uint64_t id : {1, 2, 3}) pair.a.post(write(near, pair.b.buffer(8), id));
  pair.run_for(20 * kUs);
  wire::ExtendedHeaders ext;
  ext.aeth.syndrome = syndrome;
  pair.inject(pair.a, Operation::acknowledge, 101, ext);
  pair.drive();
  // Expect: the NAK acknowledges what came before it, fails its own, flushes the rest.
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success, status, WcStatus::flush_error});
}

TEST_CASE("An error flushes both queues in order") {
  Pair pair;
  const Buffer near = pair.a.buffer(8, 1);
  Buffer far = pair.b.buffer(8);
  far.key = 77;
  for (uint64_t id : {10, 11, 12}) pair.a.receive(id, {});
  pair.a.post(write(near, far, 1));
  for (uint64_t id : {2, 3, 4}) pair.a.post(unsignaled(send(near, id)));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3, 4});
  CHECK(wr_ids(pair.a.receive_cq) == std::vector<uint64_t>{10, 11, 12});
  CHECK(statuses(pair.a.receive_cq) == std::vector<WcStatus>(3, WcStatus::flush_error));
  CHECK(pair.a.send_queue.released() == 4);

  // Expect: what is posted later is flushed too.
  pair.a.post(send(near, 5));
  pair.a.receive(13, {});
  pair.drive();
  CHECK(pair.a.send_cq.completions.back().wr_id == 5);
  CHECK(pair.a.send_cq.completions.back().status == WcStatus::flush_error);
  CHECK(pair.a.receive_cq.completions.back().wr_id == 13);
}

}  // namespace rocemu::transport_test
