// The rules, in their order (algorithm 1 of the paper, and its sections 3.1 to 3.4). T is base_rtt,
// B the rate of a port; times and bytes of a hop are modulo 2^32, and only differences count.
//
// 1. The first window is a line rate's worth of T, and no window is greater. It is paced over T.
// 2. What an acknowledgement tells of each hop is compared with what the one before did. The first
//    is only noted, and so is one whose packet took another path, or that comes after a silence
//    in which the counters may have gone round.
// 3. A hop's utilization is (bytes sent / time) / B + min(queue, queue before) / (B T), and u is
//    that of the busiest hop. U is smoothed by the time tau between the two, as a part of T:
//    U = (1 - tau / T) U + tau / T u, with tau not above T. It begins at 1.
// 4. U at eta or above, or inc_stage at max_stage: W = Wc eta / U + w_ai, and inc_stage becomes 0.
//    Otherwise: W = Wc + w_ai, and inc_stage counts one up.
// 5. The reference window Wc becomes W, and inc_stage what rule 4 says, only with the first
//    acknowledgement of what was sent after they last did: once a round trip. The other
//    acknowledgements change W alone, from the same Wc.
// 6. A flow whose acknowledgements bear no telemetry (a peer that does not send it back, a path
//    without such switches) cannot do this. Until some comes, and when none has come for 64 T, a
//    loss halves W once in T, and acknowledgements add a packet a window.
#include "emulator/congestion/hpcc.h"

#include <algorithm>
#include <array>
#include <limits>

#include "emulator/congestion/parameter_table.h"

namespace rocemu::congestion {
namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kNsPerSecond = 1e9;

struct Parameters {
  double base_rtt_us;
  double eta;
  double max_stage;
  double w_ai_bytes;
};

// 80 bytes are for some 100 flows at 100 Gbit/s.
constexpr ParameterRow<Parameters, 1> kRows[] = {
    {"base_rtt", "us", 0.1, 1e6, false, &Parameters::base_rtt_us, {13}},
    {"eta", "", 0.01, 1, false, &Parameters::eta, {0.95}},
    {"max_stage", "", 0, 1000, true, &Parameters::max_stage, {5}},
    {"w_ai", "bytes", 1, 1e6, false, &Parameters::w_ai_bytes, {80}},
};

class Hpcc final : public Algorithm {
 public:
  Hpcc(const Parameters& parameters, const Flow& flow)
      : p_(parameters),
        base_rtt_ns_(p_.base_rtt_us * kNsPerUs),
        most_bytes_(
            std::max(static_cast<double>(flow.line_rate_bps) / 8 * base_rtt_ns_ / kNsPerSecond,
                     p_.w_ai_bytes)),
        packet_bytes_(flow.max_frame_bytes),
        window_bytes_(most_bytes_),
        reference_bytes_(most_bytes_) {}

  void on_acknowledged(const Acknowledgement& ack) override {
    acknowledged_bytes_ += ack.bytes;
    if (ack.hops.empty()) return on_silence(ack);
    const bool comparable = is_comparable(ack);
    if (comparable) measure(ack);
    const bool new_round = acknowledged_bytes_ > round_ends_;
    if (comparable) compute_window(new_round);
    if (new_round && (comparable || hop_count_ == 0))
      round_ends_ = acknowledged_bytes_ + ack.in_flight_bytes;
    remember(ack);
  }
  void on_loss(TimeNs now) override { halve(now); }
  void on_timeout(TimeNs now) override { halve(now); }

  uint64_t window_bytes() const override { return static_cast<uint64_t>(window_bytes_); }
  uint64_t rate_bps() const override {
    return static_cast<uint64_t>(window_bytes_ * 8 * kNsPerSecond / base_rtt_ns_);
  }

  std::vector<NamedValue> view(TimeNs) const override {
    return {{"rate", static_cast<double>(rate_bps()) / 1e6},
            {"window", window_bytes_},
            {"u", utilization_},
            {"inc_stage", inc_stage_},
            {"telemetry_hops", static_cast<double>(hop_count_)}};
  }

 private:
  static constexpr size_t kMaxHops = 16;
  static constexpr TimeNs kComparableNs = 2'000'000'000;
  static constexpr double kSilenceInRtts = 64;
  static constexpr double kCounterEnd = 4294967296.0;  // 2^32

  void on_silence(const Acknowledgement& ack) {
    if (static_cast<double>(ack.now - heard_at_) > kSilenceInRtts * base_rtt_ns_) hop_count_ = 0;
    if (hop_count_ == 0)
      set_window(window_bytes_ + packet_bytes_ * static_cast<double>(ack.bytes) / window_bytes_);
  }

  bool is_comparable(const Acknowledgement& ack) const {
    return hop_count_ == std::min(ack.hops.size(), kMaxHops) && ack.path == path_ &&
           ack.now - heard_at_ < kComparableNs;
  }

  void measure(const Acknowledgement& ack) {
    double busiest = -1;
    double tau_ns = 0;
    for (size_t i = 0; i < hop_count_; ++i) {
      const HopTelemetry& hop = ack.hops[i];
      const HopTelemetry& before = hops_[i];
      // A packet that has overtaken another brings what is older.
      const auto time_ns = static_cast<int32_t>(static_cast<uint32_t>(hop.timestamp_ns) -
                                                static_cast<uint32_t>(before.timestamp_ns));
      const double bytes_per_ns = static_cast<double>(hop.link_rate_bps) / 8 / kNsPerSecond;
      if (time_ns <= 0 || bytes_per_ns <= 0 || bytes_per_ns * time_ns >= kCounterEnd) continue;
      const auto sent_bytes =
          static_cast<uint32_t>(hop.tx_bytes) - static_cast<uint32_t>(before.tx_bytes);
      const auto queue_bytes = static_cast<double>(std::min(hop.queue_bytes, before.queue_bytes));
      const double utilization =
          sent_bytes / (bytes_per_ns * time_ns) + queue_bytes / (bytes_per_ns * base_rtt_ns_);
      if (utilization <= busiest) continue;
      busiest = utilization;
      tau_ns = time_ns;
    }
    const double weight = std::min(tau_ns, base_rtt_ns_) / base_rtt_ns_;
    utilization_ = (1 - weight) * utilization_ + weight * busiest;
  }

  void compute_window(bool new_round) {
    const bool multiply = utilization_ >= p_.eta || inc_stage_ >= p_.max_stage;
    const double least = std::numeric_limits<double>::min();
    set_window(multiply ? reference_bytes_ * p_.eta / std::max(utilization_, least) + p_.w_ai_bytes
                        : reference_bytes_ + p_.w_ai_bytes);
    if (!new_round) return;
    reference_bytes_ = window_bytes_;
    inc_stage_ = multiply ? 0 : inc_stage_ + 1;
  }

  void remember(const Acknowledgement& ack) {
    hop_count_ = std::min(ack.hops.size(), kMaxHops);
    std::copy_n(ack.hops.begin(), hop_count_, hops_.begin());
    path_ = ack.path;
    heard_at_ = ack.now;
  }

  void halve(TimeNs now) {
    if (hop_count_ != 0 || static_cast<double>(now - halved_at_) < base_rtt_ns_) return;
    halved_at_ = now;
    set_window(window_bytes_ / 2);
  }

  void set_window(double bytes) {
    window_bytes_ = std::min(std::max(bytes, p_.w_ai_bytes), most_bytes_);
  }

  const Parameters p_;
  const double base_rtt_ns_;
  const double most_bytes_;
  const double packet_bytes_;
  double window_bytes_;     // W
  double reference_bytes_;  // Wc
  double utilization_ = 1;  // U
  double inc_stage_ = 0;
  uint64_t acknowledged_bytes_ = 0;
  uint64_t round_ends_ = 0;  // a round ends when more than that has been acknowledged
  std::array<HopTelemetry, kMaxHops> hops_{};
  size_t hop_count_ = 0;  // 0: there was no telemetry
  uint32_t path_ = 0;
  TimeNs heard_at_ = 0;
  TimeNs halved_at_ = 0;
};

}  // namespace

std::shared_ptr<const AlgorithmKind> hpcc() {
  return kind_of<Hpcc, Parameters>("hpcc", {.every_answer = true, .telemetry = true}, kRows,
                                   {"paper"});
}

}  // namespace rocemu::congestion
