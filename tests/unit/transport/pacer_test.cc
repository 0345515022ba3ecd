// A QP with a rate: how fast it sends, and that others do not notice.
#include <array>
#include <catch2/catch.hpp>

#include "emulator/congestion/settings.h"
#include "tests/unit/transport/pair.h"

namespace rocemu::transport_test {

namespace {

constexpr uint32_t kRateKbps = 8'000;  // 1000 bytes in a millisecond
constexpr uint32_t kBytes = 100 * 1024;

uint64_t time_write(Pair& pair, Host& from) {
  const uint64_t before = pair.fabric.now_ns();
  from.post(write(from.buffer(kBytes, 1), pair.peer_of(from).buffer(kBytes)));
  while (from.send_cq.completions.empty()) pair.run_for(10 * kUs);
  REQUIRE(statuses(from.send_cq) == std::vector{WcStatus::success});
  return pair.fabric.now_ns() - before;
}

}  // namespace

TEST_CASE("A QP with a rate sends at that rate, and its peer as ever") {
  Pair pair;
  pair.a.endpoint().limit_rate(pair.a.qpn, {kRateKbps, 2000});
  const uint64_t paced_ns = time_write(pair, pair.a);
  CHECK(paced_ns > 98 * kMs);
  CHECK(paced_ns < 112 * kMs);
  CHECK(pair.count(pair.a, Operation::write_middle) == 98);  // nothing was sent twice
  CHECK(time_write(pair, pair.b) < 5 * kMs);
}

// An algorithm that never sends faster than that.
class Slow final : public congestion::Algorithm {
 public:
  uint64_t rate_bps() const override { return uint64_t{kRateKbps} * 1000; }
};

TEST_CASE("What the algorithm holds back is not looked at before its time for the rate's sake") {
  const std::array kinds{
      std::make_shared<const congestion::AlgorithmKind>(congestion::AlgorithmKind{
          .name = "slow",
          .presets = {{"default", {}}},
          .make = [](std::span<const double>, const congestion::Flow&)
              -> std::unique_ptr<congestion::Algorithm> { return std::make_unique<Slow>(); }})};
  PairOptions options;
  options.timeout = 18;  // 1 s
  options.node.limits.congestion = congestion::parse_settings("slow", kinds).settings.value();
  Pair pair(options);
  pair.a.endpoint().limit_rate(pair.a.qpn, {1'000'000, 0});
  pair.a.post(write(pair.a.buffer(kBytes, 1), pair.b.buffer(kBytes)));
  pair.run_for(3 * kMs + kMs / 2);
  REQUIRE(statuses(pair.a.send_cq) == std::vector<WcStatus>{});
  CHECK(pair.a.endpoint().next_deadline() > pair.fabric.now_ns());
}

TEST_CASE("When a rate lets the next packet go is told apart from timers that may come late") {
  Pair pair;
  CHECK(pair.a.endpoint().next_send() == kNever);
  pair.a.endpoint().limit_rate(pair.a.qpn, {kRateKbps, 2000});
  pair.a.post(write(pair.a.buffer(kBytes, 1), pair.b.buffer(kBytes)));
  pair.run_for(3 * kMs + kMs / 2);
  const TimeNs now = pair.fabric.now_ns();
  CHECK(pair.a.endpoint().next_send() > now);
  CHECK(pair.a.endpoint().next_send() < now + 2 * kMs);  // at 8 Mbit/s a packet takes 1.1 ms
  CHECK(pair.b.endpoint().next_send() == kNever);
  pair.drive();
  CHECK(pair.a.endpoint().next_send() == kNever);
}

TEST_CASE("A rate that has ended holds nothing back") {
  Pair pair;
  pair.a.endpoint().limit_rate(pair.a.qpn, {1, 0});
  const Buffer from = pair.a.buffer(kBytes, 1);
  const Buffer to = pair.b.buffer(kBytes);
  pair.a.post(write(from, to));
  pair.run_for(kMs);
  CHECK(pair.a.send_cq.completions.empty());
  pair.a.endpoint().limit_rate(pair.a.qpn, {});
  pair.run_for(5 * kMs);
  CHECK(statuses(pair.a.send_cq) == std::vector{WcStatus::success});
  CHECK(pair.b.bytes(to) == pair.a.bytes(from));
  // The time at which the old rate would have let a packet go comes once, and then is gone.
  if (const TimeNs left_over = pair.a.endpoint().next_send(); left_over != kNever) {
    CHECK(pair.a.endpoint().next_deadline() <= left_over);
    pair.run_for(left_over - pair.fabric.now_ns() + kMs);
  }
  CHECK(pair.a.endpoint().next_send() == kNever);
}

TEST_CASE("A burst is ahead of the rate, and no more") {
  Pacer pacer({kRateKbps, 3000});
  TimeNs now = 5 * kMs;
  for (int frame = 0; frame < 4; ++frame) {
    CHECK(pacer.may_send(now));
    pacer.on_sent(now, 1000);
  }
  CHECK_FALSE(pacer.may_send(now));
  CHECK(pacer.next_send() == now + kMs);
  CHECK(pacer.may_send(now + kMs));
  CHECK(Pacer({100'000'000, 0}).may_send(0));
}

}  // namespace rocemu::transport_test
