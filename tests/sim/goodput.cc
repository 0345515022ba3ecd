// A table of goodput and retransmitted share of 64 KiB RDMA WRITEs over loss, window and path MTU,
// in virtual time and hence the same at every run.
//   sim_goodput                 prints it
//   sim_goodput --check FILE    ends with 1 when FILE holds another one
#include <algorithm>
#include <cstdio>
#include <string>

#include "emulator/sim/endpoint_node.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/sim_queues.h"
#include "tests/sim/stored_table.h"

namespace rocemu::sim {

namespace {

using namespace transport;

constexpr uint32_t kMessageBytes = 64 * 1024;
constexpr uint32_t kMessages = 256;
constexpr uint64_t kRateBitsPerS = 10'000'000'000;
constexpr uint64_t kDelayNs = 10'000;
constexpr uint8_t kTimeout = 8;  // 1.05 ms
constexpr uint64_t kPatienceNs = 60'000'000'000;

struct Outcome {
  bool finished = false;
  double goodput_mbit_per_s = 0;
  double retransmitted_percent = 0;  // of the request frames
  uint64_t timeouts = 0;
};

struct Side {
  explicit Side(EndpointNode& its_node) : node(its_node), send_queue(kMessages) {
    qpn = node.endpoint().create_rc({1, &send_queue, &receive_queue, &cq, &cq}).value();
  }
  void connect(const Side& peer, uint32_t mtu_bytes) {
    QpAttributes attributes;
    attributes.path = node.path_to(peer.node);
    attributes.path_mtu_bytes = mtu_bytes;
    attributes.remote_qpn = peer.qpn;
    attributes.access = kRemoteWrite;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1;
    attributes.timeout = kTimeout;
    attributes.retry_count = attributes.rnr_retry = 7;
    for (QpState state : {QpState::init, QpState::ready_to_receive, QpState::ready_to_send})
      node.endpoint().modify(qpn, state, attributes);
  }

  EndpointNode& node;
  SimSendQueue send_queue;
  SimReceiveQueue receive_queue;
  SimCompletionQueue cq;
  wire::Qpn qpn{};
};

Outcome measure(uint32_t loss_ppm, uint32_t window_packets, uint32_t mtu_bytes) {
  Fabric fabric(1);
  NodeOptions options;
  options.limits.window_packets = window_packets;
  // An ACK at least for each half of the window, so that the window can move on.
  options.limits.ack_interval_packets =
      std::min(options.limits.ack_interval_packets, window_packets / 2);
  Side from(fabric.add_node<EndpointNode>(options));
  Side to(fabric.add_node<EndpointNode>(options));
  const impairment::Impairments link{
      .delay_ns = kDelayNs, .rate_bits_per_s = kRateBitsPerS, .loss_ppm = loss_ppm};
  fabric.set_link(from.node, to.node, link);
  fabric.set_link(to.node, from.node, link);
  from.connect(to, mtu_bytes);
  to.connect(from, mtu_bytes);

  const uint64_t source = from.node.memory().allocate(kMessageBytes);
  const uint32_t lkey = from.node.memory().register_region(1, source, kMessageBytes, kLocalWrite);
  const uint64_t target = to.node.memory().allocate(kMessageBytes);
  const uint32_t rkey =
      to.node.memory().register_region(1, target, kMessageBytes, kLocalWrite | kRemoteWrite);
  uint32_t completed = 0;
  uint64_t end_ns = 0;
  from.cq.on_push = [&](const Completion& completion) {
    if (completion.status != WcStatus::success) return;
    ++completed;
    end_ns = fabric.now_ns();
  };
  uint64_t request_frames = 0;
  fabric.observer = [&](const FrameRecord& record) {
    if (record.kind == FrameRecord::Kind::sent && record.from == from.node.index())
      ++request_frames;
    return true;
  };
  for (uint32_t i = 0; i < kMessages; ++i)
    from.send_queue.post({.wr_id = i,
                          .opcode = WorkOpcode::write,
                          .remote_address = target,
                          .rkey = rkey,
                          .sges = {{source, kMessageBytes, wire::LKey{lkey}}}});
  from.node.ring(from.qpn);
  fabric.run(kPatienceNs);

  Outcome outcome;
  outcome.finished = completed == kMessages;
  if (!outcome.finished) return outcome;
  const Counters& counters = from.node.endpoint().counters();
  outcome.goodput_mbit_per_s = 8000.0 * kMessageBytes * kMessages / static_cast<double>(end_ns);
  outcome.retransmitted_percent = 100.0 * static_cast<double>(counters[TraceEvent::retransmitted]) /
                                  static_cast<double>(request_frames);
  outcome.timeouts = counters[TraceEvent::ack_timeout];
  return outcome;
}

std::string table() {
  std::string text =
      "64 KiB RDMA WRITEs, 256 of them, one QP; 10 Gbit/s and 10 us each way, frames of both\n"
      "directions lost alike; ACK timeout 1.05 ms; an ACK asked for every min(64, window / 2)\n"
      "packets. Goodput: payload. Retransmitted: share of the request frames.\n\n"
      "  loss %  window    mtu  goodput Mbit/s  retransmitted %  timeouts\n";
  for (uint32_t loss_ppm : {0u, 1'000u, 10'000u, 50'000u, 100'000u}) {
    for (uint32_t window : {16u, 64u, 256u}) {
      for (uint32_t mtu : {1024u, 4096u}) {
        const Outcome outcome = measure(loss_ppm, window, mtu);
        char line[96];
        if (outcome.finished) {
          std::snprintf(line, sizeof line, "%8.1f%8u%7u%16.0f%17.2f%10llu\n", loss_ppm / 1e4,
                        window, mtu, outcome.goodput_mbit_per_s, outcome.retransmitted_percent,
                        static_cast<unsigned long long>(outcome.timeouts));
        } else {
          std::snprintf(line, sizeof line, "%8.1f%8u%7u  not finished\n", loss_ppm / 1e4, window,
                        mtu);
        }
        text += line;
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
