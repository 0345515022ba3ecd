// A table of goodput with go-back-N and with selective repeat over loss: 64 KiB RDMA WRITEs and
// READs, in virtual time and hence the same at every run.
//   sim_recovery                 prints it
//   sim_recovery --check FILE    ends with 1 when FILE holds another one
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
constexpr uint32_t kMtuBytes = 4096;
constexpr uint32_t kMessages = 1024;
constexpr uint64_t kRateBitsPerS = 10'000'000'000;
constexpr uint64_t kDelayNs = 10'000;
constexpr uint8_t kTimeout = 14;  // 67 ms
constexpr uint64_t kPatienceNs = 60'000'000'000;

struct Side {
  explicit Side(EndpointNode& its_node) : node(its_node), send_queue(kMessages) {
    qpn = node.endpoint().create_rc({1, &send_queue, &receive_queue, &cq, &cq}).value();
    address = node.memory().allocate(kMessageBytes);
    key = node.memory().register_region(1, address, kMessageBytes,
                                        kLocalWrite | kRemoteWrite | kRemoteRead);
  }
  void connect(const Side& peer) {
    QpAttributes attributes;
    attributes.path = node.path_to(peer.node);
    attributes.path_mtu_bytes = kMtuBytes;
    attributes.remote_qpn = peer.qpn;
    attributes.access = kRemoteWrite | kRemoteRead;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
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
  uint64_t address = 0;
  uint32_t key = 0;
};

struct Outcome {
  bool finished = false;
  double goodput_mbit_per_s = 0;
  double sent_again_percent = 0;  // of the frames with payload
};

struct Scenario {
  Recovery recovery;
  WorkOpcode opcode;
  uint32_t loss_ppm;
  bool spray;  // packets overtake each other, and the ends know that they may
};

Outcome measure(const Scenario& scenario) {
  Fabric fabric(1);
  NodeOptions options;
  options.limits.recovery = scenario.recovery;
  options.limits.multipath = scenario.spray;
  Side from(fabric.add_node<EndpointNode>(options));
  Side to(fabric.add_node<EndpointNode>(options));
  const impairment::Impairments link{.delay_ns = kDelayNs,
                                     .rate_bits_per_s = kRateBitsPerS,
                                     .loss_ppm = scenario.loss_ppm,
                                     .reorder_ppm = scenario.spray ? 300'000u : 0,
                                     .reorder_delay_ns = kDelayNs};
  fabric.set_link(from.node, to.node, link);
  fabric.set_link(to.node, from.node, link);
  from.connect(to);
  to.connect(from);

  uint32_t completed = 0;
  uint64_t end_ns = 0;
  from.cq.on_push = [&](const Completion& completion) {
    if (completion.status != WcStatus::success) return;
    ++completed;
    end_ns = fabric.now_ns();
  };
  for (uint32_t i = 0; i < kMessages; ++i)
    from.send_queue.post({.wr_id = i,
                          .opcode = scenario.opcode,
                          .remote_address = to.address,
                          .rkey = wire::RKey{to.key}.value,
                          .sges = {{from.address, kMessageBytes, wire::LKey{from.key}}}});
  from.node.ring(from.qpn);
  fabric.run(kPatienceNs);

  Outcome outcome;
  outcome.finished = completed == kMessages;
  if (!outcome.finished) return outcome;
  const Side& sender = scenario.opcode == WorkOpcode::read ? to : from;
  const double needed = 1.0 * kMessages * kMessageBytes / kMtuBytes;
  const auto sent =
      static_cast<double>(sender.node.endpoint().counters()[TraceEvent::payload_sent]) / kMtuBytes;
  outcome.goodput_mbit_per_s = 8000.0 * kMessageBytes * kMessages / static_cast<double>(end_ns);
  outcome.sent_again_percent = 100 * (sent - needed) / needed;
  return outcome;
}

std::string table() {
  std::string text =
      "64 KiB RDMA WRITEs and READs, 1024 of them, one QP; 10 Gbit/s and 10 us each way, MTU "
      "4096,\n"
      "frames of both directions lost alike; ACK timeout 67 ms. Goodput: payload, Mbit/s. Again:\n"
      "what was sent more than once, in % of the payload (headers before it count as well).\n"
      "Reorder: 30 % of the frames are 10 us late; with selective repeat multipath is on.\n\n"
      "  verb   reorder  loss %   go-back-N   again %   selective   again %\n";
  for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
    for (const bool spray : {false, true}) {
      for (const uint32_t loss_ppm : {0u, 100u, 1'000u, 10'000u, 20'000u, 50'000u}) {
        char line[96];
        std::snprintf(line, sizeof line, "%6s%10s%8.2f",
                      opcode == WorkOpcode::read ? "READ" : "WRITE", spray ? "yes" : "no",
                      loss_ppm / 1e4);
        text += line;
        for (const Recovery recovery : {Recovery::go_back_n, Recovery::selective_repeat}) {
          const Outcome outcome = measure({recovery, opcode, loss_ppm, spray});
          if (outcome.finished) {
            std::snprintf(line, sizeof line, "%12.0f%10.2f", outcome.goodput_mbit_per_s,
                          outcome.sent_again_percent);
          } else {
            std::snprintf(line, sizeof line, "%22s", "not finished");
          }
          text += line;
        }
        text += "\n";
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
