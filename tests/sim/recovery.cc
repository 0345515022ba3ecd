// A table of goodput with go-back-N and with selective repeat over loss: 64 KiB RDMA WRITEs and
// READs, in virtual time and hence the same at every run.
//   sim_recovery                 prints it
//   sim_recovery --check FILE    ends with 1 when FILE holds another one
#include <cstdio>
#include <string>

#include "tests/sim/bulk_pair.h"
#include "tests/sim/stored_table.h"

namespace rocemu::sim {

namespace {

using namespace transport;

constexpr uint32_t kMessages = 1024;
constexpr uint64_t kRateBitsPerS = 10'000'000'000;
constexpr uint64_t kDelayNs = 10'000;
constexpr uint8_t kTimeout = 14;  // 67 ms

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
  BulkOptions options{.link = {.delay_ns = kDelayNs,
                               .rate_bits_per_s = kRateBitsPerS,
                               .loss_ppm = scenario.loss_ppm,
                               .reorder_ppm = scenario.spray ? 300'000u : 0,
                               .reorder_delay_ns = kDelayNs},
                      .opcode = scenario.opcode,
                      .messages = kMessages,
                      .timeout = kTimeout};
  options.limits.recovery = scenario.recovery;
  options.limits.multipath = scenario.spray;
  BulkPair pair(options);
  Outcome outcome;
  outcome.finished = pair.run();
  if (!outcome.finished) return outcome;
  BulkPair::Side& sender = scenario.opcode == WorkOpcode::read ? pair.to : pair.from;
  const double needed = 1.0 * kMessages * options.message_bytes / options.mtu_bytes;
  const auto sent =
      static_cast<double>(sender.node.endpoint().counters()[TraceEvent::payload_sent]) /
      options.mtu_bytes;
  outcome.goodput_mbit_per_s = pair.goodput_mbit_per_s();
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
