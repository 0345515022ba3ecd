// What stands on the two sides of the PSN's wrap is compared modulo 2^24.
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr uint32_t kLength = 4096;  // four packets: 0xfffffe to 1

PairOptions near_wrap() {
  PairOptions options;
  options.a_psn = 0xfffffe;
  return options;
}

// Loses the first frame of `operation` with `psn`.
std::function<bool(const Sent&)> lose_once(Operation operation, uint32_t psn) {
  return [operation, psn, lost = false](const Sent& frame) mutable {
    if (lost || frame.operation != operation || frame.psn != psn) return false;
    return lost = true;
  };
}

}  // namespace

TEST_CASE("A gap before the PSN wrap is seen behind it") {
  Pair pair(near_wrap());
  const Buffer from = pair.a.buffer(kLength, 1);
  const Buffer to = pair.b.buffer(kLength);
  pair.lose = lose_once(Operation::write_middle, 0xffffff);
  pair.a.post(write(from, to));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(to) == pair.a.bytes(from));
  CHECK(pair.b.counters()[TraceEvent::sequence_nak_sent] == 1);
  CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 0);
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] == 0);
}

TEST_CASE("Duplicates from before the PSN wrap are known behind it") {
  Pair pair(near_wrap());
  const Buffer from = pair.a.buffer(kLength, 1);
  const Buffer to = pair.b.buffer(kLength);
  SECTION("a WRITE whose ACK was lost") {
    pair.lose = lose_once(Operation::acknowledge, 1);
    pair.a.post(write(from, to));
    pair.drive();
    CHECK(pair.b.bytes(to) == pair.a.bytes(from));
    CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 4);
  }
  SECTION("a READ that goes on from its middle") {
    pair.lose = lose_once(Operation::read_response_middle, 0xffffff);
    const Buffer source = pair.b.buffer(kLength, 2);
    pair.a.post(read(from, source));
    pair.drive();
    CHECK(pair.a.bytes(from) == pair.b.bytes(source));
    CHECK(pair.b.counters()[TraceEvent::duplicate_request] == 1);
  }
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.counters()[TraceEvent::sequence_nak_sent] == 0);
}

}  // namespace rocemu::transport_test
