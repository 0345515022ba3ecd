// What a QP that moves much costs the others of its device, in virtual time: the NIC has a turn
// each 12 us, in which it sends 32 frames at most, and nothing else is slow. (A turn of the engine
// is shorter when it sends less, so what is left for the bulk is no figure of this.)
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/random.h"
#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "tests/sim/bulk_pair.h"

namespace rocemu::sim {
namespace {

using namespace transport;

constexpr uint64_t kTurnNs = 12'000;
constexpr uint64_t kMeasuredNs = 50'000'000;
constexpr uint32_t kLittleQps = 100;
constexpr uint32_t kLittleBytes = 64;
constexpr uint64_t kBetweenNs = 500'000;  // of one of the little QPs: 4 of them a turn
constexpr uint32_t kBulkBytes = 1 << 20;
constexpr uint32_t kBulkInFlight = 8;

NodeOptions of_a_nic() {
  NodeOptions options;
  options.max_qps = kLittleQps + 8;
  options.poll_interval_ns = kTurnNs;
  return options;
}

// WRITEs of one length from one host to another.
class Connection {
 public:
  Connection(EndpointNode& a, EndpointNode& b, uint32_t bytes, uint32_t depth)
      : options_{.messages = depth, .message_bytes = bytes, .timeout = 14},
        from_(a, options_),
        to_(b, options_) {
    from_.connect(to_, options_);
    to_.connect(from_, options_);
  }

  void write() {
    from_.send_queue.post(
        {.opcode = WorkOpcode::write,
         .remote_address = to_.address,
         .rkey = to_.key,
         .sges = {{from_.address, options_.message_bytes, wire::LKey{from_.key}}}});
    from_.node.ring(from_.qpn);
  }
  SimCompletionQueue& cq() { return from_.cq; }

 private:
  BulkOptions options_;
  BulkPair::Side from_, to_;
};

struct Outcome {
  std::vector<uint64_t> little_ns;  // from post to completion, sorted
  uint64_t bulk_bytes = 0;

  uint64_t p99_ns() const { return little_ns.at(little_ns.size() * 99 / 100); }
};

Outcome measure(bool with_bulk) {
  Fabric fabric(1);
  auto& a = fabric.add_node<EndpointNode>(of_a_nic());
  auto& b = fabric.add_node<EndpointNode>(of_a_nic());
  Outcome outcome;
  Random random(1);
  Connection bulk(a, b, kBulkBytes, kBulkInFlight);
  bulk.cq().on_push = [&](const Completion& completion) {
    REQUIRE(completion.status == WcStatus::success);
    outcome.bulk_bytes += kBulkBytes;
    // A program posts after the NIC's turn, not within it.
    fabric.at(fabric.now_ns(), [&] { bulk.write(); });
  };
  for (uint32_t i = 0; with_bulk && i < kBulkInFlight; ++i) bulk.write();
  std::deque<Connection> little;
  for (uint32_t i = 0; i < kLittleQps; ++i) {
    Connection& one = little.emplace_back(a, b, kLittleBytes, 1);
    const auto begin = [&fabric, &one, &outcome] {
      const uint64_t posted_ns = fabric.now_ns();
      one.cq().on_push = [&fabric, &outcome, posted_ns](const Completion& completion) {
        REQUIRE(completion.status == WcStatus::success);
        outcome.little_ns.push_back(fabric.now_ns() - posted_ns);
      };
      one.write();
    };
    for (uint64_t at = random.between(1, kBetweenNs); at < kMeasuredNs; at += kBetweenNs)
      fabric.at(at, begin);
  }
  fabric.run(kMeasuredNs);
  std::sort(outcome.little_ns.begin(), outcome.little_ns.end());
  return outcome;
}

}  // namespace

TEST_CASE("a hundred QPs with small messages hardly notice one with bulk") {
  const Outcome alone = measure(false);
  const Outcome beside = measure(true);
  CAPTURE(alone.p99_ns(), beside.p99_ns(), beside.bulk_bytes);
  // Nearly all have come to their end by then.
  CHECK(beside.little_ns.size() >= kLittleQps * (kMeasuredNs / kBetweenNs - 1));
  CHECK(beside.p99_ns() <= alone.p99_ns() + kTurnNs);
  CHECK(beside.bulk_bytes > 0);
}

TEST_CASE("bursts of bulk are short while small messages go, and long again soon after") {
  constexpr uint64_t kMs = 1'000'000;
  constexpr uint64_t kLastSmallNs = 5 * kMs;
  NodeOptions options = of_a_nic();
  options.tx_burst = 64;
  Fabric fabric(1);
  auto& a = fabric.add_node<EndpointNode>(options);
  auto& b = fabric.add_node<EndpointNode>(options);
  std::map<uint64_t, unsigned> bursts;  // the packets of `a` by the time at which they left
  fabric.observer = [&](const FrameRecord& record) {
    if (record.kind == FrameRecord::Kind::sent && record.from == 0) ++bursts[record.now_ns];
    return true;
  };
  Connection bulk(a, b, kBulkBytes, kBulkInFlight), other(a, b, kBulkBytes, kBulkInFlight);
  Connection little(a, b, kLittleBytes, 1);
  for (Connection* each : {&bulk, &other}) {
    each->cq().on_push = [&fabric, each](const Completion&) {
      fabric.at(fabric.now_ns(), [each] { each->write(); });
    };
    for (uint32_t i = 0; i < kBulkInFlight; ++i) each->write();
  }
  for (uint64_t at = 2 * kMs; at <= kLastSmallNs; at += kMs / 10)
    fabric.at(at, [&] { little.write(); });
  fabric.run(8 * kMs);

  const auto longest = [&](uint64_t from, uint64_t to) {
    unsigned packets = 0;
    for (const auto& [at, count] : bursts)
      if (at >= from && at < to) packets = std::max(packets, count);
    return packets;
  };
  CHECK(longest(kMs, 2 * kMs) == 64);
  CHECK(longest(2 * kMs + 5 * kTurnNs, kLastSmallNs) < 32);
  CHECK(longest(kLastSmallNs + kMs + 5 * kTurnNs, 8 * kMs) == 64);
}

}  // namespace rocemu::sim
