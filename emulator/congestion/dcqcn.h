// DCQCN's reaction point: the rate of a flow by the CNPs that come for it (Zhu et al., "Congestion
// Control for Large-Scale RDMA Deployments", SIGCOMM 2015; NVIDIA's parameters of the same rules).
// A flow has a current rate, at which it sends, and a target rate, to which it comes back.
//
// 1. A flow without congestion sends at the line's rate and keeps no state. The first CNP begins
//    it: alpha is its initial value, and the current rate may be set to one that is configured.
// 2. Decrease: the target becomes the current rate, and the current rate is multiplied by
//    1 - alpha / 2, yet not below min_dec_fac of it, nor below the least rate. The stages are 0
//    again, and byte counter and timer start anew.
//    This is done at the end of each monitor period in which a CNP came, of which the first begins
//    with the first CNP; with a period of 0 (the paper) for each CNP at once, since the
//    notification point spaces them. Without clamp_tgt_rate the target stays where it is, unless
//    clamp_tgt_rate_after_time_inc is set and the timer has raised the rate since the last
//    decrease.
// 3. Alpha: with a period of 0 each CNP makes it (1 - g) alpha + g, after the decrease, and each
//    dce_tcp_rtt without one (1 - g) alpha. With a monitor period it is looked at every
//    dce_tcp_rtt, and g is added when a CNP came in that time. So 1 - g is dce_tcp_g / 1024.
// 4. Increase: whenever rpg_byte_reset bytes were sent, and whenever rpg_time_reset is over. Each
//    has its stage, the number of times it came since the last decrease. While both are below
//    rpg_threshold (fast recovery), the current rate moves halfway to the target. Then the target
//    grows by rpg_ai_rate (additive increase) first or, with both stages beyond the threshold, by
//    rpg_hai_rate (hyper increase). A counter that is off (rpg_byte_reset 0) is not asked.
// 5. No rate is above rpg_max_rate, or the line's. Within a thousandth of it, the flow is as at
//    first.
#pragma once

#include "emulator/congestion/algorithm.h"
#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

struct DcqcnParameters {
  double time_reset_us;
  double byte_reset;
  double threshold;
  double max_rate_mbps;  // 0: the line's
  double ai_rate_mbps;
  double hai_rate_mbps;
  double gd;               // log2 of what alpha, of 1024 parts, is divided by
  double min_dec_percent;  // the percentage of the rate that a decrease leaves at least
  double min_rate_mbps;
  double first_rate_mbps;  // 0: the current one
  double g_of_1024;
  double alpha_interval_us;
  double monitor_period_us;
  double initial_alpha_of_1024;
  double clamp_target;
  double clamp_target_after_time;
};

class Dcqcn final : public Algorithm {
 public:
  Dcqcn(const DcqcnParameters& parameters, const Flow& flow);

  void on_sent(TimeNs now, uint32_t bytes) override;
  void on_cnp(TimeNs now) override;
  void on_timer(TimeNs now) override;
  TimeNs deadline() const override;
  uint64_t rate_bps() const override;
  std::vector<NamedValue> view(TimeNs now) const override;

 private:
  void begin(TimeNs now);
  void decrease(TimeNs now);
  void increase();
  void end();

  const DcqcnParameters parameters_;
  const double max_bps_;
  const double keep_;  // the part of alpha that stays: 1 - g
  const TimeNs alpha_interval_ns_;
  bool limited_ = false;   // rule 1
  bool cnp_came_ = false;  // in the monitor period
  double current_bps_;
  double target_bps_;

  struct Alpha {
    double value;
    TimeNs since = 0;       // the beginning of the interval under way
    bool cnp_came = false;  // in it
  };
  // Rule 3, for all intervals that are over.
  Alpha alpha_at(TimeNs now) const;
  Alpha alpha_;
  TimeNs period_ends_ = kNever;  // the end of the monitor period
  struct Stages {
    uint32_t by_time = 0;
    uint32_t by_bytes = 0;
    TimeNs timer = kNever;
    uint64_t bytes = 0;  // since the counter was reset
  } stages_;
};

std::shared_ptr<const AlgorithmKind> dcqcn();

}  // namespace rocemu::congestion
