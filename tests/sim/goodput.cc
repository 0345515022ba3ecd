// A table of goodput and retransmitted share of 64 KiB RDMA WRITEs over loss, window and path MTU,
// in virtual time and hence the same at every run.
//   sim_goodput                 prints it
//   sim_goodput --check FILE    ends with 1 when FILE holds another one
#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/sim/bulk_pair.h"
#include "tests/sim/stored_table.h"

namespace rocemu::sim {

namespace {

using namespace transport;

constexpr uint32_t kMessages = 256;
constexpr uint64_t kRateBitsPerS = 10'000'000'000;
constexpr uint64_t kDelayNs = 10'000;
constexpr uint8_t kTimeout = 8;  // 1.05 ms

struct Outcome {
  bool finished = false;
  double goodput_mbit_per_s = 0;
  double retransmitted_percent = 0;  // of the request frames
  uint64_t timeouts = 0;
};

Outcome measure(uint32_t loss_ppm, uint32_t window_packets, uint32_t mtu_bytes) {
  BulkOptions options{
      .link = {.delay_ns = kDelayNs, .rate_bits_per_s = kRateBitsPerS, .loss_ppm = loss_ppm},
      .messages = kMessages,
      .mtu_bytes = mtu_bytes,
      .timeout = kTimeout};
  options.limits.window_packets = window_packets;
  // An ACK at least for each half of the window, so that the window can move on.
  options.limits.ack_interval_packets =
      std::min(options.limits.ack_interval_packets, window_packets / 2);
  BulkPair pair(options);
  uint64_t request_frames = 0;
  pair.fabric.observer = [&](const FrameRecord& record) {
    if (record.kind == FrameRecord::Kind::sent && record.from == pair.from.node.index())
      ++request_frames;
    return true;
  };
  Outcome outcome;
  outcome.finished = pair.run();
  if (!outcome.finished) return outcome;
  const Counters& counters = pair.from.node.endpoint().counters();
  outcome.goodput_mbit_per_s = pair.goodput_mbit_per_s();
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
