// Messages of a few bytes travel inline in the CQE of their receive, when the program can put them
// in place itself, and inline in the WQE of their send.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

// A pair whose second program copies inline data into place.
struct InlineCqePair : Pair {
  InlineCqePair() { b.receive_cq.memory = &b.node().memory(); }

  const InlineCqeData& inline_data() { return b.receive_cq.completions.at(0).inline_data; }
};

}  // namespace

TEST_CASE_METHOD(InlineCqePair, "A message of a few bytes travels in its completion") {
  const uint32_t bytes = GENERATE(1u, 8u, InlineCqeData::kMaxBytes);
  const Buffer near = a.buffer(bytes, 1);
  const Buffer far = b.buffer(64);
  b.receive(1, {far.sge()});
  a.post(send(near));
  drive();
  REQUIRE(statuses(b.receive_cq) == std::vector{WcStatus::success});
  CHECK(b.receive_cq.completions[0].byte_length == bytes);
  CHECK(inline_data().length_bytes == bytes);
  CHECK(inline_data().address == far.address);
  const auto got = b.bytes(far);
  CHECK(std::equal(got.begin(), got.begin() + bytes, a.bytes(near).begin()));
}

TEST_CASE_METHOD(InlineCqePair,
                 "What does not fit into a completion, or into one place, is moved") {
  const auto [bytes, first_bytes] =
      GENERATE(std::pair(InlineCqeData::kMaxBytes + 1, 64u), std::pair(8u, 7u));
  const Buffer near = a.buffer(bytes, 1);
  const Buffer first = b.buffer(first_bytes);
  b.receive(1, {first.sge(), b.buffer(64).sge()});
  a.post(send(near));
  drive();
  REQUIRE(statuses(b.receive_cq) == std::vector{WcStatus::success});
  CHECK(inline_data().length_bytes == 0);
  const auto got = b.bytes(first);
  const auto original = a.bytes(near);
  CHECK(std::equal(got.begin(), got.begin() + std::min(bytes, first_bytes), original.begin()));
}

TEST_CASE_METHOD(InlineCqePair,
                 "A short message inline in its CQE and a longer one after it that is moved") {
  const Buffer far = b.buffer(64);
  b.receive(1, {far.sge()});
  b.receive(2, {far.sge()});
  a.post(send(a.buffer(8, 1), 1));
  a.post(send(a.buffer(40, 2), 2));
  drive();
  REQUIRE(b.receive_cq.completions.size() == 2);
  CHECK(b.receive_cq.completions[0].inline_data.length_bytes == 8);
  CHECK(b.receive_cq.completions[1].inline_data.length_bytes == 0);
}

TEST_CASE_METHOD(InlineCqePair, "A receive whose key grants nothing fails as ever") {
  Sge sge = b.buffer(64, 0, 0).sge();  // no local write
  b.receive(1, {sge});
  a.post(send(a.buffer(8, 1)));
  drive();
  CHECK(statuses(b.receive_cq) == std::vector{WcStatus::local_protection_error});
  CHECK(inline_data().length_bytes == 0);
}

TEST_CASE_METHOD(InlineCqePair, "What cannot be moved takes the inline data behind it along") {
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
  CHECK(b.receive_cq.completions[1].inline_data.length_bytes == 0);
}

TEST_CASE("Nothing is inline in the CQE of a program that cannot put it in place") {
  Pair pair;
  pair.b.receive(1, {pair.b.buffer(64).sge()});
  pair.a.post(send(pair.a.buffer(8, 1)));
  pair.drive();
  REQUIRE(statuses(pair.b.receive_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.receive_cq.completions[0].inline_data.length_bytes == 0);
}

namespace {

// A pair whose first program posts payload beside the elements that name it.
struct InlineWqePair : Pair {
  InlineWqePair() { a.send_cq.memory = &a.node().memory(); }

  SendRequest inline_send(const Buffer& near, size_t bytes) {
    SendRequest request = send(near);
    request.inline_wqe_data.assign(bytes, std::byte{0x77});
    return request;
  }
};

}  // namespace

TEST_CASE_METHOD(InlineWqePair, "Inline WQE data is sent in place of a look into memory") {
  const Buffer near = a.buffer(16, 1);
  const Buffer far = b.buffer(16);
  b.receive(1, {far.sge()});
  int tries = 0;
  lose = [&](const Sent& frame) { return frame.from_a && tries++ == 0; };
  a.post(inline_send(near, 16));
  drive();
  CHECK(b.bytes(far) == std::vector(16, std::byte{0x77}));
}

TEST_CASE_METHOD(InlineWqePair, "Inline WQE data is not looked at when memory is another's") {
  a.send_cq.memory = nullptr;
  const Buffer near = a.buffer(16, 1);
  const Buffer far = b.buffer(16);
  b.receive(1, {far.sge()});
  a.post(inline_send(near, 16));
  drive();
  CHECK(b.bytes(far) == a.bytes(near));
}

TEST_CASE_METHOD(InlineWqePair, "The element beside inline WQE data is checked") {
  Buffer near = a.buffer(16, 1);
  near.key += 1000;
  a.post(inline_send(near, 16));
  drive();
  CHECK(statuses(a.send_cq) == std::vector{WcStatus::local_protection_error});
}

}  // namespace rocemu::transport_test
