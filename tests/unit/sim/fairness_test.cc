// What a QP that moves much costs the others of its device, in virtual time: the NIC has a turn
// each 12 us, in which it sends 32 frames at most, and nothing else is slow. (A turn of the engine
// is shorter when it sends less, so what is left for the bulk is no figure of this.)
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/random.h"
#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"

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

// One end of a connection. Each of its WRITEs is of the same length.
class End {
 public:
  End(EndpointNode& node, uint32_t bytes, uint32_t depth)
      : node_(node), bytes_(bytes), queue_(depth) {
    qpn_ = node.endpoint().create_rc({1, &queue_, &receive_queue_, &cq, &cq}).value();
    address_ = node.memory().allocate(bytes);
    key_ = node.memory().register_region(1, address_, bytes, kLocalWrite | kRemoteWrite);
  }

  void connect(const End& peer) {
    QpAttributes attributes;
    attributes.path = node_.path_to(peer.node_);
    attributes.path_mtu_bytes = 4096;
    attributes.remote_qpn = peer.qpn_;
    attributes.access = kRemoteWrite;
    attributes.timeout = 14;
    attributes.retry_count = attributes.rnr_retry = 7;
    for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      node_.endpoint().modify(qpn_, state, attributes);
    peer_ = &peer;
  }

  void write() {
    queue_.post({.opcode = WorkOpcode::write,
                 .remote_address = peer_->address_,
                 .rkey = peer_->key_,
                 .sges = {{address_, bytes_, wire::LKey{key_}}}});
    node_.ring(qpn_);
  }

  SimCompletionQueue cq;

 private:
  EndpointNode& node_;
  uint32_t bytes_;
  SimSendQueue queue_;
  SimReceiveQueue receive_queue_;
  wire::Qpn qpn_{};
  uint64_t address_ = 0;
  uint32_t key_ = 0;
  const End* peer_ = nullptr;
};

struct Connection {
  Connection(EndpointNode& a, EndpointNode& b, uint32_t bytes, uint32_t depth)
      : from(a, bytes, depth), to(b, bytes, depth) {
    from.connect(to);
    to.connect(from);
  }
  End from, to;
};

struct Outcome {
  std::vector<uint64_t> little_ns;  // from post to completion, sorted
  uint64_t bulk_bytes = 0;

  uint64_t p99_ns() const { return little_ns.at(little_ns.size() * 99 / 100); }
};

Outcome measure(uint32_t little_qps, uint32_t bulk_qps) {
  Fabric fabric(1);
  auto& a = fabric.add_node<EndpointNode>(of_a_nic());
  auto& b = fabric.add_node<EndpointNode>(of_a_nic());
  Outcome outcome;
  Random random(1);
  std::deque<Connection> bulk, little;
  for (uint32_t i = 0; i < bulk_qps; ++i) {
    Connection& one = bulk.emplace_back(a, b, kBulkBytes, kBulkInFlight);
    one.from.cq.on_push = [&](const Completion& completion) {
      REQUIRE(completion.status == WcStatus::success);
      outcome.bulk_bytes += kBulkBytes;
      // A program posts after the NIC's turn, not within it.
      fabric.at(fabric.now_ns(), [&] { one.from.write(); });
    };
    for (uint32_t j = 0; j < kBulkInFlight; ++j) one.from.write();
  }
  for (uint32_t i = 0; i < little_qps; ++i) {
    Connection& one = little.emplace_back(a, b, kLittleBytes, 1);
    const auto begin = [&fabric, &one, &outcome] {
      const uint64_t posted_ns = fabric.now_ns();
      one.from.cq.on_push = [&fabric, &outcome, posted_ns](const Completion& completion) {
        REQUIRE(completion.status == WcStatus::success);
        outcome.little_ns.push_back(fabric.now_ns() - posted_ns);
      };
      one.from.write();
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
  const Outcome alone = measure(kLittleQps, 0);
  const Outcome beside = measure(kLittleQps, 1);
  CAPTURE(alone.p99_ns(), beside.p99_ns(), beside.bulk_bytes);
  // Nearly all have come to their end by then.
  CHECK(beside.little_ns.size() >= kLittleQps * (kMeasuredNs / kBetweenNs - 1));
  CHECK(beside.p99_ns() <= alone.p99_ns() + kTurnNs);
  CHECK(beside.bulk_bytes > 0);
}

}  // namespace rocemu::sim
