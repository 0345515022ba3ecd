// What a requester sends when packets are lost, by its congestion control.
#include <catch2/catch.hpp>

#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

TEST_CASE("After losses less is sent ahead of the acknowledgements") {
  PairOptions options;
  options.mtu_bytes = 256;
  options.retry_count = 7;
  Pair pair(options);
  // A path long enough that a whole window fits in it.
  for (Host* host : {&pair.a, &pair.b})
    pair.fabric.set_link(host->node(), pair.peer_of(*host).node(), {.delay_ns = 300 * kUs});
  const Buffer near = pair.a.buffer(1000 * 256, 1);
  const Buffer far = pair.b.buffer(1000 * 256);
  // One in each window.
  std::vector<uint32_t> lost;
  uint64_t next_ns = 0;
  pair.lose = [&](const Sent& frame) {
    if (!frame.from_a || frame.now_ns < next_ns || lost.size() == 6) return false;
    next_ns = frame.now_ns + 2 * kMs;
    lost.push_back(frame.psn);
    return true;
  };
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(pair.b.bytes(far) == pair.a.bytes(near));
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  REQUIRE(lost.size() == 6);
  // 256 of them each time, were it not for the smaller window.
  CHECK(pair.a.counters()[TraceEvent::retransmitted] < 256 + 128 + 64 + 3 * 2 * 32);
}

TEST_CASE("A window that takes longer than the ACK timeout narrows until it does not") {
  PairOptions options;
  options.mtu_bytes = 4096;
  options.timeout = 6;  // 262 us; 256 packets take 850 us
  options.retry_count = 7;
  Pair pair(options);
  for (Host* host : {&pair.a, &pair.b})
    pair.fabric.set_link(host->node(), pair.peer_of(*host).node(),
                         {.delay_ns = 10 * kUs, .rate_bits_per_s = 10'000'000'000});
  const Buffer near = pair.a.buffer(1000 * 4096, 1);
  const Buffer far = pair.b.buffer(1000 * 4096);
  // The path is cut for a moment, which puts the whole window behind.
  pair.lose = [](const Sent& frame) {
    return frame.now_ns > 500 * kUs && frame.now_ns < 900 * kUs;
  };
  pair.a.post(write(near, far));
  pair.drive();
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK((pair.b.bytes(far) == pair.a.bytes(near)));
  CHECK(pair.a.counters()[TraceEvent::ack_timeout] > 0);
  // The whole window each time would end with all retries used up.
  CHECK(pair.a.counters()[TraceEvent::retransmitted] < 1000);
}

}  // namespace rocemu::transport_test
