// Messages of a few bytes travel in the completion of their receive, when the program can put them
// in place itself.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

// A pair whose second program puts what completions carry in place.
struct CarryingPair : Pair {
  CarryingPair() { b.receive_cq.memory = &b.node().memory(); }

  const CarriedPayload& carried() { return b.receive_cq.completions.at(0).carried; }
};

}  // namespace

TEST_CASE_METHOD(CarryingPair, "A message of a few bytes travels in its completion") {
  const uint32_t bytes = GENERATE(1u, 8u, CarriedPayload::kMaxBytes);
  const Buffer near = a.buffer(bytes, 1);
  const Buffer far = b.buffer(64);
  b.receive(1, {far.sge()});
  a.post(send(near));
  drive();
  REQUIRE(statuses(b.receive_cq) == std::vector{WcStatus::success});
  CHECK(b.receive_cq.completions[0].byte_length == bytes);
  CHECK(carried().length_bytes == bytes);
  CHECK(carried().address == far.address);
  const auto got = b.bytes(far);
  CHECK(std::equal(got.begin(), got.begin() + bytes, a.bytes(near).begin()));
}

TEST_CASE_METHOD(CarryingPair, "What does not fit into a completion, or into one place, is moved") {
  const auto [bytes, first_bytes] =
      GENERATE(std::pair(CarriedPayload::kMaxBytes + 1, 64u), std::pair(8u, 7u));
  const Buffer near = a.buffer(bytes, 1);
  const Buffer first = b.buffer(first_bytes);
  b.receive(1, {first.sge(), b.buffer(64).sge()});
  a.post(send(near));
  drive();
  REQUIRE(statuses(b.receive_cq) == std::vector{WcStatus::success});
  CHECK(carried().length_bytes == 0);
  const auto got = b.bytes(first);
  const auto original = a.bytes(near);
  CHECK(std::equal(got.begin(), got.begin() + std::min(bytes, first_bytes), original.begin()));
}

TEST_CASE_METHOD(CarryingPair,
                 "A short message after a carried one that needs a move carries none") {
  const Buffer far = b.buffer(64);
  b.receive(1, {far.sge()});
  b.receive(2, {far.sge()});
  a.post(send(a.buffer(8, 1), 1));
  a.post(send(a.buffer(40, 2), 2));
  drive();
  REQUIRE(b.receive_cq.completions.size() == 2);
  CHECK(b.receive_cq.completions[0].carried.length_bytes == 8);
  CHECK(b.receive_cq.completions[1].carried.length_bytes == 0);
}

TEST_CASE_METHOD(CarryingPair, "A receive whose key grants nothing fails as ever") {
  Sge sge = b.buffer(64, 0, 0).sge();  // no local write
  b.receive(1, {sge});
  a.post(send(a.buffer(8, 1)));
  drive();
  CHECK(statuses(b.receive_cq) == std::vector{WcStatus::local_protection_error});
  CHECK(carried().length_bytes == 0);
}

TEST_CASE_METHOD(CarryingPair, "What cannot be moved takes the payload carried behind it along") {
  const Buffer broken = b.buffer(64);
  b.node().memory().break_region(broken.key);
  b.receive(1, {broken.sge()});
  b.receive(2, {b.buffer(64).sge()});
  a.post(send(a.buffer(40, 1), 1));
  a.post(send(a.buffer(8, 2), 2));
  drive();
  REQUIRE(b.receive_cq.completions.size() == 2);
  CHECK(statuses(b.receive_cq) ==
        std::vector{WcStatus::local_protection_error, WcStatus::flush_error});
  CHECK(b.receive_cq.completions[1].carried.length_bytes == 0);
}

TEST_CASE("Nothing is carried to a program that cannot put it in place") {
  Pair pair;
  pair.b.receive(1, {pair.b.buffer(64).sge()});
  pair.a.post(send(pair.a.buffer(8, 1)));
  pair.drive();
  REQUIRE(statuses(pair.b.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.receive_cq.completions[0].carried.length_bytes == 0);
}

namespace {

// A pair whose first program posts payload beside the elements that name it.
struct CarriedSends : Pair {
  CarriedSends() { a.send_cq.memory = &a.node().memory(); }

  SendRequest carrying(const Buffer& near, size_t bytes) {
    SendRequest request = send(near);
    request.carried_payload.assign(bytes, std::byte{0x77});
    return request;
  }
};

}  // namespace

TEST_CASE_METHOD(CarriedSends, "What a request carries is sent in place of a look into memory") {
  const Buffer near = a.buffer(16, 1);
  const Buffer far = b.buffer(16);
  b.receive(1, {far.sge()});
  int tries = 0;
  lose = [&](const Sent& frame) { return frame.from_a && tries++ == 0; };
  a.post(carrying(near, 16));
  drive();
  CHECK(b.bytes(far) == std::vector(16, std::byte{0x77}));
}

TEST_CASE_METHOD(CarriedSends, "What is carried is not looked at when memory is another's") {
  a.send_cq.memory = nullptr;
  const Buffer near = a.buffer(16, 1);
  const Buffer far = b.buffer(16);
  b.receive(1, {far.sge()});
  a.post(carrying(near, 16));
  drive();
  CHECK(b.bytes(far) == a.bytes(near));
}

TEST_CASE_METHOD(CarriedSends, "The element of a request that carries its payload is checked") {
  Buffer near = a.buffer(16, 1);
  near.key += 1000;
  a.post(carrying(near, 16));
  drive();
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::local_protection_error});
}

}  // namespace rocemu::transport_test
