// The rules, in their order (algorithm 1 of the paper, and its sections 4.2 to 4.4):
//
// 1. The line's rate is the first, and no rate is above it or below min_rate.
// 2. A completion is the acknowledgement of `segment` bytes, or of all that is in flight: a slow
//    flow would else hear nothing for long. Its round trip is that of the newest packet, without
//    the time that the packet itself takes at the line's rate. The first one is only noted.
// 3. The gradient is the difference to the completion before, smoothed (ewma_alpha is the weight of
//    the newest), as a part of min_rtt.
// 4. Below t_low: rate += delta, whatever the gradient.
// 5. Above t_high: rate *= 1 - beta (1 - t_high / rtt), whatever the gradient.
// 6. In between, when the gradient is not positive: rate += N delta. N is 1, and from the
//    hai_threshold-th such completion in a row on hai_factor: hyperactive increase.
// 7. In between, when it is positive: rate *= 1 - beta gradient, where the factor is not below 0.
// 8. Losses are not TIMELY's affair: it was made for networks that pause senders.
#include "emulator/congestion/timely.h"

#include <algorithm>

#include "emulator/congestion/parameter_table.h"

namespace rocemu::congestion {
namespace {

constexpr double kBpsPerMbit = 1e6;
constexpr double kNsPerUs = 1e3;

struct Parameters {
  double ewma_alpha;
  double beta;
  double delta_mbps;
  double t_low_us;
  double t_high_us;
  double min_rtt_us;
  double hai_threshold;
  double hai_factor;
  double segment_bytes;
  double min_rate_mbps;
};

// T_low, T_high, delta, beta and segments of 16 KB are the paper's; the weight and the shortest
// round trip are those of HPCC's simulator, which compares with TIMELY.
constexpr ParameterRow<Parameters, 1> kRows[] = {
    {"ewma_alpha", "", 0, 1, false, &Parameters::ewma_alpha, {0.875}},
    {"beta", "", 0, 1, false, &Parameters::beta, {0.8}},
    {"delta", "Mbit/s", 0.001, 1e6, false, &Parameters::delta_mbps, {10}},
    {"t_low", "us", 0, 1e6, false, &Parameters::t_low_us, {50}},
    {"t_high", "us", 1, 1e6, false, &Parameters::t_high_us, {500}},
    {"min_rtt", "us", 0.1, 1e6, false, &Parameters::min_rtt_us, {20}},
    {"hai_threshold", "", 1, 1000, true, &Parameters::hai_threshold, {5}},
    {"hai_factor", "", 1, 1000, false, &Parameters::hai_factor, {5}},
    {"segment", "bytes", 1, 1e8, true, &Parameters::segment_bytes, {16384}},
    {"min_rate", "Mbit/s", 0.001, 1e6, false, &Parameters::min_rate_mbps, {10}},
};

class Timely final : public Algorithm {
 public:
  Timely(const Parameters& parameters, const Flow& flow)
      : p_(parameters),
        line_mbps_(static_cast<double>(flow.line_rate_bps) / kBpsPerMbit),
        packet_us_(flow.max_frame_bytes * 8.0 / line_mbps_),
        rate_mbps_(line_mbps_) {}

  void on_acknowledged(const Acknowledgement& ack) override {
    acknowledged_bytes_ += static_cast<double>(ack.bytes);
    const bool complete = acknowledged_bytes_ >= p_.segment_bytes || ack.in_flight_bytes == 0;
    if (!ack.rtt_ns || !complete) return;
    acknowledged_bytes_ = 0;
    on_completion(std::max(0.0, static_cast<double>(*ack.rtt_ns) / kNsPerUs - packet_us_));
  }

  uint64_t rate_bps() const override { return static_cast<uint64_t>(rate_mbps_ * kBpsPerMbit); }

  std::vector<NamedValue> view(TimeNs) const override {
    return {{"rate", rate_mbps_},
            {"rtt", rtt_us_},
            {"gradient", rtt_difference_us_ / p_.min_rtt_us},
            {"falling_rtts", static_cast<double>(not_rising_)}};
  }

 private:
  void on_completion(double rtt_us) {
    const double before_us = rtt_us_;
    rtt_us_ = rtt_us;
    if (before_us < 0) return;
    rtt_difference_us_ =
        (1 - p_.ewma_alpha) * rtt_difference_us_ + p_.ewma_alpha * (rtt_us - before_us);
    const double gradient = rtt_difference_us_ / p_.min_rtt_us;
    const bool in_between = rtt_us >= p_.t_low_us && rtt_us <= p_.t_high_us;
    not_rising_ = in_between && gradient <= 0 ? not_rising_ + 1 : 0;
    if (rtt_us < p_.t_low_us) {
      rate_mbps_ += p_.delta_mbps;
    } else if (rtt_us > p_.t_high_us) {
      rate_mbps_ *= 1 - p_.beta * (1 - p_.t_high_us / rtt_us);
    } else if (gradient <= 0) {
      rate_mbps_ += (not_rising_ >= p_.hai_threshold ? p_.hai_factor : 1) * p_.delta_mbps;
    } else {
      rate_mbps_ *= std::max(0.0, 1 - p_.beta * gradient);
    }
    rate_mbps_ = std::min(std::max(rate_mbps_, p_.min_rate_mbps), line_mbps_);
  }

  const Parameters p_;
  const double line_mbps_;
  const double packet_us_;  // the time that a packet takes at the line's rate
  double rate_mbps_;
  double rtt_us_ = -1;  // that of the newest completion; below 0: there was none
  double rtt_difference_us_ = 0;
  uint64_t not_rising_ = 0;  // completions of rule 6 in a row
  double acknowledged_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const AlgorithmKind> timely() {
  return kind_of<Timely, Parameters>("timely", {.every_answer = true}, kRows, {"paper"});
}

}  // namespace rocemu::congestion
