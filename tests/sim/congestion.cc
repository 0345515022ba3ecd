// A table of what several QPs make of a path that is slower than they are, by the queue before it:
// how much of it they use, how fairly, and what they send in vain. In virtual time, and hence the
// same at every run.
//   sim_congestion                 prints it
//   sim_congestion --check FILE    ends with 1 when FILE holds another one
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "tests/sim/stored_table.h"

namespace rocemu::sim {

namespace {

using namespace transport;

constexpr uint32_t kMaxMessageBytes = 100'000;
constexpr uint32_t kInFlight = 16;  // messages of a QP
constexpr uint64_t kRateBitsPerS = 2'000'000'000;
constexpr uint64_t kDelayNs = 50'000;
constexpr uint64_t kMeasuredNs = 1'000'000'000;
constexpr uint8_t kTimeout = 14;  // 67 ms

// One end of a connection, which sends WRITEs of random sizes as long as there is time.
class Sender {
 public:
  Sender(Fabric& fabric, EndpointNode& node)
      : fabric_(fabric), node_(node), random_(node.index()), send_queue_(kInFlight) {
    qpn_ = node.endpoint().create_rc({1, &send_queue_, &receive_queue_, &cq_, &cq_}).value();
    address_ = node.memory().allocate(kMaxMessageBytes);
    key_ = node.memory().register_region(1, address_, kMaxMessageBytes, kLocalWrite | kRemoteWrite);
    cq_.on_push = [this](const Completion& completion) { on_completion(completion); };
  }

  void connect(const Sender& peer, uint32_t mtu_bytes) {
    QpAttributes attributes;
    attributes.path = node_.path_to(peer.node_);
    attributes.path_mtu_bytes = mtu_bytes;
    attributes.remote_qpn = peer.qpn_;
    attributes.access = kRemoteWrite;
    attributes.timeout = kTimeout;
    attributes.retry_count = attributes.rnr_retry = 7;
    for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      node_.endpoint().modify(qpn_, state, attributes);
    target_ = peer.address_;
    rkey_ = peer.key_;
  }

  void start(uint64_t seed) {
    random_ = Random(seed);
    for (uint32_t i = 0; i < kInFlight; ++i) post();
  }

  uint64_t moved_bytes() const { return moved_bytes_; }
  bool failed() const { return failed_; }

 private:
  void post() {
    const auto size = static_cast<uint32_t>(random_.between(1, kMaxMessageBytes));
    sizes_.push_back(size);
    send_queue_.post({.opcode = WorkOpcode::write,
                      .remote_address = target_,
                      .rkey = rkey_,
                      .sges = {{address_, size, wire::LKey{key_}}}});
    node_.ring(qpn_);
  }

  void on_completion(const Completion& completion) {
    if (completion.status != WcStatus::success) {
      failed_ = true;
      return;
    }
    moved_bytes_ += sizes_.front();
    sizes_.pop_front();
    // A program posts after the NIC's turn, not within it.
    fabric_.at(fabric_.now_ns(), [this] { post(); });
  }

  Fabric& fabric_;
  EndpointNode& node_;
  Random random_;
  SimSendQueue send_queue_;
  SimReceiveQueue receive_queue_;
  SimCompletionQueue cq_;
  wire::Qpn qpn_{};
  uint64_t address_ = 0, target_ = 0;
  uint32_t key_ = 0, rkey_ = 0;
  std::deque<uint32_t> sizes_;
  uint64_t moved_bytes_ = 0;
  bool failed_ = false;
};

struct Scenario {
  uint32_t mtu_bytes;
  uint64_t queue_bytes;
  uint32_t qps;
  bool both_ways;
};

struct Outcome {
  double used_percent = 0;           // of the link, by payload
  double fairness = 0;               // Jain's index: 1 when all got the same
  double retransmitted_percent = 0;  // of the frames with requests
  uint64_t timeouts = 0;
  uint32_t failed = 0;
};

double jains_index(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares == 0 ? 0 : sum * sum / (squares * static_cast<double>(shares.size()));
}

Outcome measure(const Scenario& scenario) {
  Fabric fabric(1);
  EndpointNode& a = fabric.add_node<EndpointNode>(NodeOptions{});
  EndpointNode& b = fabric.add_node<EndpointNode>(NodeOptions{});
  const impairment::Impairments link{.delay_ns = kDelayNs,
                                     .rate_bits_per_s = kRateBitsPerS,
                                     .queue_limit_bytes = scenario.queue_bytes};
  fabric.set_link(a, b, link);
  fabric.set_link(b, a, link);
  std::deque<Sender> near, far;
  for (uint32_t i = 0; i < scenario.qps; ++i) {
    Sender& from = near.emplace_back(fabric, a);
    Sender& to = far.emplace_back(fabric, b);
    from.connect(to, scenario.mtu_bytes);
    to.connect(from, scenario.mtu_bytes);
    from.start(2 * i + 1);
    if (scenario.both_ways) to.start(2 * i + 2);
  }
  fabric.run(kMeasuredNs);

  Outcome outcome;
  const uint32_t ways = scenario.both_ways ? 2 : 1;
  std::vector<double> shares;
  double sum_bytes = 0;
  for (const std::deque<Sender>* senders : {&near, &far}) {
    if (senders == &far && !scenario.both_ways) break;
    for (const Sender& sender : *senders) {
      shares.push_back(static_cast<double>(sender.moved_bytes()));
      sum_bytes += shares.back();
      outcome.failed += sender.failed();
    }
  }
  outcome.used_percent =
      100 * 8e9 * sum_bytes / (double{kRateBitsPerS} * double{kMeasuredNs} * ways);
  outcome.fairness = jains_index(shares);
  uint64_t requests = 0, again = 0;
  for (EndpointNode* node : {&a, &b}) {
    const Counters& counters = node->endpoint().counters();
    again += counters[TraceEvent::retransmitted];
    outcome.timeouts += counters[TraceEvent::ack_timeout];
    requests += counters[TraceEvent::payload_sent] / scenario.mtu_bytes;
  }
  outcome.retransmitted_percent =
      100 * static_cast<double>(again) / static_cast<double>(std::max<uint64_t>(requests, 1));
  return outcome;
}

std::string table() {
  std::string text =
      "RDMA WRITEs of random sizes to 100 kB for 1 s; 2 Gbit/s and 50 us each way, ACK timeout\n"
      "67 ms. Used: payload, of the link. Fairness: Jain's index of the QPs. Retransmitted: share\n"
      "of the request frames. Failed: QPs.\n\n"
      "   mtu  queue kB  ways  QPs  used %  fairness  retransmitted %  timeouts  failed\n";
  for (const uint32_t mtu : {4096u, 1024u}) {
    for (const uint64_t queue : {10'000u, 30'000u, 100'000u, 1'000'000u}) {
      for (const bool both_ways : {false, true}) {
        for (const uint32_t qps : {1u, 4u, 16u, 64u}) {
          const Outcome outcome = measure({mtu, queue, qps, both_ways});
          char line[128];
          std::snprintf(line, sizeof line, "%6u%10llu%6u%5u%8.1f%10.3f%17.2f%10llu%8u\n", mtu,
                        static_cast<unsigned long long>(queue / 1000), both_ways ? 2u : 1u, qps,
                        outcome.used_percent, outcome.fairness, outcome.retransmitted_percent,
                        static_cast<unsigned long long>(outcome.timeouts), outcome.failed);
          text += line;
        }
      }
    }
  }
  return text;
}

}  // namespace

}  // namespace rocemu::sim

int main(int argc, char** argv) {
  return rocemu::sim::print_or_check(argc, argv, rocemu::sim::table);
}
