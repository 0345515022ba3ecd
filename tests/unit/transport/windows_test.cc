// Binding and invalidating memory windows: their order among other requests, and what becomes of
// those that are refused.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr uint32_t kWindow = 0x7700;

SendRequest bind(const Buffer& region, uint32_t key, uint64_t wr_id = 9) {
  SendRequest request{.wr_id = wr_id, .opcode = WorkOpcode::bind_window};
  request.binding = {wire::RKey{key}, wire::LKey{region.key}, region.address, region.length_bytes,
                     kRemoteWrite};
  return request;
}

SendRequest local_invalidate(uint32_t key, uint64_t wr_id = 9) {
  return {.wr_id = wr_id, .opcode = WorkOpcode::local_invalidate, .rkey = key};
}

SendRequest send_invalidate(const Buffer& from, uint32_t key, uint64_t wr_id = 1) {
  SendRequest request = send(from, wr_id);
  request.opcode = WorkOpcode::send_invalidate;
  request.rkey = key;
  return request;
}

Buffer by_key(Buffer buffer, uint32_t key) {
  buffer.key = key;
  return buffer;
}

}  // namespace

TEST_CASE("A window is bound, written through, and invalidated by the peer's SEND") {
  Pair pair;
  const uint32_t bytes = GENERATE(0u, 100u, 1024u, 3000u);
  const Buffer source = pair.a.buffer(bytes, 7);
  const Buffer inbox = pair.b.buffer(bytes);
  const Buffer target = pair.b.buffer(64, 0, kLocalWrite);
  const Buffer near = pair.a.buffer(64, 3);

  pair.b.post(bind(target, kWindow));
  pair.drive();
  REQUIRE(pair.b.send_cq.completions.size() == 1);
  CHECK(pair.b.send_cq.completions[0].status == WcStatus::success);
  CHECK(pair.b.send_cq.completions[0].opcode == WcOpcode::bind_window);
  CHECK(pair.sent.empty());

  pair.b.receive(50, {inbox.sge()});
  pair.a.post(write(near, by_key(target, kWindow), 1));
  pair.a.post(send_invalidate(source, kWindow, 2));
  pair.a.post(write(near, by_key(target, kWindow), 3));
  pair.drive();
  CHECK(pair.b.bytes(target) == pair.a.bytes(near));
  CHECK(pair.b.bytes(inbox) == pair.a.bytes(source));
  REQUIRE(pair.b.receive_cq.completions.size() == 1);
  const Completion& received = pair.b.receive_cq.completions[0];
  CHECK(received.status == WcStatus::success);
  CHECK(received.byte_length == bytes);
  CHECK(received.has_invalidated);
  CHECK_FALSE(received.has_immediate);
  CHECK(received.immediate == kWindow);
  CHECK(statuses(pair.a.send_cq) ==
        std::vector{WcStatus::success, WcStatus::success, WcStatus::remote_access_error});
}

TEST_CASE("Local requests take their turn among the others") {
  Pair pair;
  const Buffer near = pair.a.buffer(3000, 3);
  const Buffer far = pair.b.buffer(3000);
  const Buffer own = pair.a.buffer(64);
  SECTION("without loss") {}
  SECTION("while what is before them is lost once") {
    pair.lose = [lost = false](const Sent& frame) mutable {
      const bool first = frame.from_a && !lost;
      lost = lost || first;
      return first;
    };
  }
  pair.a.post(write(near, far, 1));
  pair.a.post(bind(own, kWindow, 2));
  pair.a.post(read(near, far, 3));
  pair.a.post(local_invalidate(kWindow, 4));
  pair.a.post(write(near, far, 5));
  pair.drive();
  CHECK(wr_ids(pair.a.send_cq) == std::vector<uint64_t>{1, 2, 3, 4, 5});
  CHECK(statuses(pair.a.send_cq) == std::vector(5, WcStatus::success));
  CHECK(pair.a.send_queue.released() == 5);
}

TEST_CASE("Many local requests are done in one go, and no others are kept waiting") {
  Pair pair;
  const Buffer own = pair.a.buffer(64);
  for (uint32_t i = 0; i < 200; ++i) {
    pair.a.post(unsignaled(bind(own, kWindow + i)));
    pair.a.post(unsignaled(local_invalidate(kWindow + i)));
    if (pair.a.send_queue.full()) pair.drive();
  }
  pair.a.post(bind(own, kWindow));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
}

TEST_CASE("What is refused ends the connection on this side") {
  Pair pair;
  const Buffer own = pair.a.buffer(64);
  const Buffer far = pair.b.buffer(64);
  WcStatus expected = WcStatus::success;
  SECTION("binding") {
    pair.a.post(bind(by_key(own, 0x12345), kWindow));
    expected = WcStatus::window_bind_error;
  }
  SECTION("invalidating") {
    pair.a.post(local_invalidate(kWindow));
    expected = WcStatus::window_bind_error;
  }
  pair.a.post(write(own, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{expected, WcStatus::flush_error});
  CHECK(pair.a.state() == QpState::error);
  CHECK(pair.sent.empty());
}

TEST_CASE("A window is bound and invalidated over UC, in the order of the requests") {
  PairOptions options;
  options.a_service = options.b_service = Service::uc;
  Pair pair(options);
  const Buffer near = pair.a.buffer(3000, 3);
  const Buffer target = pair.b.buffer(3000, 0, kLocalWrite);
  pair.b.post(write(pair.b.buffer(3000), pair.a.buffer(3000), 1));
  pair.b.post(bind(target, kWindow, 2));
  pair.drive();
  CHECK(wr_ids(pair.b.send_cq) == std::vector<uint64_t>{1, 2});
  CHECK(statuses(pair.b.send_cq) == std::vector{WcStatus::success, WcStatus::success});
  pair.a.post(write(near, by_key(target, kWindow), 1));
  pair.drive();
  CHECK(pair.b.bytes(target) == pair.a.bytes(near));

  pair.b.post(local_invalidate(kWindow, 3));
  pair.b.post(local_invalidate(kWindow, 4));  // which is bound no more
  pair.b.post(write(pair.b.buffer(8), pair.a.buffer(8), 5));
  pair.drive();
  CHECK(statuses(pair.b.send_cq) == std::vector{WcStatus::success, WcStatus::success,
                                                WcStatus::success, WcStatus::window_bind_error,
                                                WcStatus::flush_error});
  CHECK(pair.b.state() == QpState::send_queue_error);
  pair.a.post(write(pair.a.buffer(3000, 4), by_key(target, kWindow), 2));
  pair.drive();
  CHECK(pair.b.bytes(target) == pair.a.bytes(near));
}

TEST_CASE("A SEND that would invalidate what it may not is refused") {
  Pair pair;
  const Buffer source = pair.a.buffer(100, 7);
  const Buffer inbox = pair.b.buffer(100);
  pair.b.receive(50, {inbox.sge()});
  pair.a.post(send_invalidate(source, kWindow));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::remote_access_error});
  REQUIRE(pair.b.receive_cq.completions.size() == 1);
  CHECK(pair.b.receive_cq.completions[0].status == WcStatus::remote_invalid_request_error);
  CHECK(pair.b.events().empty());
}

TEST_CASE("A SEND with invalidate that comes again invalidates nothing again") {
  Pair pair;
  const Buffer target = pair.b.buffer(64, 0, kLocalWrite);
  const Buffer source = pair.a.buffer(100, 7);
  const Buffer inbox = pair.b.buffer(100);
  pair.b.post(bind(target, kWindow));
  pair.b.receive(50, {inbox.sge()});
  // The acknowledgement is lost, so the SEND is sent again.
  pair.lose = [lost = false](const Sent& frame) mutable {
    const bool first = !frame.from_a && !lost;
    lost = lost || first;
    return first;
  };
  pair.a.post(send_invalidate(source, kWindow));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.receive_cq.completions.size() == 1);
  CHECK(pair.b.state() == QpState::ready_to_send);
}

}  // namespace rocemu::transport_test
