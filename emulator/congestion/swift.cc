// The rules, in their order (algorithm 1 of the paper, and its sections 3.1 to 3.6). The window is
// in packets of the path's whole MTU, and may be less than one.
//
// 1. The target is base_target + hops * hop_scale + flow scaling (topology and flow scaling, 3.5).
//    Flow scaling grows as the window gets smaller, since a queue with many flows in it varies
//    more: alpha / sqrt(window) + beta, not below 0 or above fs_range, with
//      alpha = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),
//      beta = -alpha / sqrt(fs_max_cwnd).
//    Hops are the switches that the packets have passed, by their telemetry, or `hops` without any.
// 2. An acknowledgement below the target: window += ai * packets / window, where a window below 1
//    counts as 1.
// 3. One at the target or above it: window *= max(1 - beta (delay - target) / delay, 1 - max_mdf),
//    if the last decrease was a round trip ago.
// 4. A loss: window *= 1 - max_mdf, if the last decrease was a round trip ago.
// 5. An ACK timeout: the same; from the retx_reset_threshold-th in a row on: min_cwnd.
// 6. The window stays between min_cwnd and max_cwnd.
// 7. A window below one packet is a packet every round trip / window: pacing. Above, nothing is
//    paced.
//
// Delay is the whole round trip. Swift takes the receiving host's part out of it and has a second
// window for that; here nothing tells the two apart.
#include "emulator/congestion/swift.h"

#include <algorithm>
#include <cmath>

#include "emulator/congestion/parameter_table.h"

namespace rocemu::congestion {
namespace {

constexpr double kNsPerUs = 1e3;

struct Parameters {
  double base_target_us;
  double hop_scale_us;
  double hops;
  double fs_range_us;
  double fs_min_cwnd;
  double fs_max_cwnd;
  double ai;
  double beta;
  double max_mdf;
  double min_cwnd;
  double max_cwnd;
  double initial_cwnd;
  double retx_reset_threshold;
};

// The paper names no numbers but the range of flow scaling (0.1 to 100 packets). The others are
// those that csg-htsim guesses, for a network of a few microseconds.
constexpr ParameterRow<Parameters, 1> kRows[] = {
    {"base_target", "us", 0.1, 1e6, false, &Parameters::base_target_us, {20}},
    {"hop_scale", "us", 0, 1e6, false, &Parameters::hop_scale_us, {3}},
    {"hops", "", 0, 255, true, &Parameters::hops, {1}},
    {"fs_range", "us", 0, 1e6, false, &Parameters::fs_range_us, {100}},
    {"fs_min_cwnd", "packets", 0.001, 1e6, false, &Parameters::fs_min_cwnd, {0.1}},
    {"fs_max_cwnd", "packets", 0.001, 1e6, false, &Parameters::fs_max_cwnd, {100}},
    {"ai", "packets", 0.001, 1000, false, &Parameters::ai, {1}},
    {"beta", "", 0, 1, false, &Parameters::beta, {0.8}},
    {"max_mdf", "", 0, 0.99, false, &Parameters::max_mdf, {0.5}},
    {"min_cwnd", "packets", 0.001, 1e6, false, &Parameters::min_cwnd, {0.01}},
    {"max_cwnd", "packets", 0.001, 1e6, false, &Parameters::max_cwnd, {256}},
    {"initial_cwnd", "packets", 0.001, 1e6, false, &Parameters::initial_cwnd, {16}},
    {"retx_reset_threshold", "", 1, 1000, true, &Parameters::retx_reset_threshold, {5}},
};

class Swift final : public Algorithm {
 public:
  Swift(const Parameters& parameters, const Flow& flow)
      : p_(parameters),
        packet_bytes_(flow.max_frame_bytes),
        hops_(p_.hops),
        window_(std::clamp(p_.initial_cwnd, p_.min_cwnd, std::max(p_.min_cwnd, p_.max_cwnd))) {
    const double span = 1 / std::sqrt(p_.fs_min_cwnd) - 1 / std::sqrt(p_.fs_max_cwnd);
    fs_alpha_us_ = span > 0 ? p_.fs_range_us / span : 0;
    fs_beta_us_ = -fs_alpha_us_ / std::sqrt(p_.fs_max_cwnd);
  }

  void on_acknowledged(const Acknowledgement& ack) override {
    timeouts_ = 0;
    if (ack.hops_passed != 0) hops_ = ack.hops_passed;
    if (!ack.rtt_ns) return;
    delay_us_ = static_cast<double>(*ack.rtt_ns) / kNsPerUs;
    const double target = target_us();
    if (delay_us_ < target) {
      set_window(ack.now, window_ + p_.ai * ack.packets / std::max(window_, 1.0));
    } else if (may_decrease(ack.now)) {
      const double excess = (delay_us_ - target) / std::max(delay_us_, 1e-3);
      set_window(ack.now, window_ * std::max(1 - p_.beta * excess, 1 - p_.max_mdf));
    }
  }
  void on_loss(TimeNs now) override {
    timeouts_ = 0;
    if (may_decrease(now)) set_window(now, window_ * (1 - p_.max_mdf));
  }
  void on_timeout(TimeNs now) override {
    if (++timeouts_ >= p_.retx_reset_threshold) {
      set_window(now, p_.min_cwnd);
    } else if (may_decrease(now)) {
      set_window(now, window_ * (1 - p_.max_mdf));
    }
  }

  uint64_t window_bytes() const override {
    return static_cast<uint64_t>(window_ * packet_bytes_ + 0.5);
  }
  uint64_t rate_bps() const override {
    if (window_ >= 1 || delay_us_ <= 0) return kUnlimited;
    return static_cast<uint64_t>(packet_bytes_ * 8 * window_ / delay_us_ * 1e6);
  }

  std::vector<NamedValue> view(TimeNs) const override {
    return {{"cwnd", window_},
            {"delay", std::max(delay_us_, 0.0)},
            {"target_delay", target_us()},
            {"hops", hops_}};
  }

 private:
  double target_us() const {
    const double flow_scaling = fs_alpha_us_ / std::sqrt(window_) + fs_beta_us_;
    return p_.base_target_us + hops_ * p_.hop_scale_us +
           std::clamp(flow_scaling, 0.0, p_.fs_range_us);
  }
  bool may_decrease(TimeNs now) const {
    return static_cast<double>(now - decreased_at_) >= delay_us_ * kNsPerUs;
  }
  void set_window(TimeNs now, double window) {
    const double before = window_;
    window_ = std::max(std::min(window, p_.max_cwnd), p_.min_cwnd);
    if (window_ < before) decreased_at_ = now;
  }

  const Parameters p_;
  const double packet_bytes_;
  double fs_alpha_us_;
  double fs_beta_us_;
  double hops_;
  double window_;         // in packets
  double delay_us_ = -1;  // that of the newest acknowledgement; below 0: none was measured
  TimeNs decreased_at_ = 0;
  uint32_t timeouts_ = 0;  // in a row
};

}  // namespace

std::shared_ptr<const AlgorithmKind> swift() {
  return kind_of<Swift, Parameters>("swift", {.every_answer = true, .hop_count = true}, kRows,
                                    {"datacenter"});
}

}  // namespace rocemu::congestion
