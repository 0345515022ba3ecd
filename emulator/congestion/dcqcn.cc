#include "emulator/congestion/dcqcn.h"

#include <algorithm>

namespace rocemu::congestion {
namespace {

constexpr double kBitsPerMbit = 1e6;
constexpr double kAlphaOne = 1024;  // 1 in the parameters that are fractions of it
constexpr double kAsAtFirst = 0.999;

TimeNs ns_of(double us) { return static_cast<TimeNs>(us * 1e3); }

// Computes the power by squaring: std::pow differs between libraries, and results are to be the
// same on any machine.
double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

Dcqcn::Dcqcn(const DcqcnParameters& parameters, const Flow& flow)
    : parameters_(parameters),
      max_bps_(parameters.max_rate_mbps == 0 ? static_cast<double>(flow.line_rate_bps)
                                             : std::min(parameters.max_rate_mbps * kBitsPerMbit,
                                                        static_cast<double>(flow.line_rate_bps))),
      keep_(parameters.g_of_1024 / kAlphaOne),
      alpha_interval_ns_(ns_of(parameters.alpha_interval_us)),
      current_bps_(max_bps_),
      target_bps_(max_bps_),
      alpha_{.value = parameters.initial_alpha_of_1024 / kAlphaOne} {}

Dcqcn::Alpha Dcqcn::alpha_at(TimeNs now) const {
  if (now < alpha_.since + alpha_interval_ns_) return alpha_;
  const uint64_t intervals = (now - alpha_.since) / alpha_interval_ns_;
  const double added = alpha_.cnp_came ? (1 - keep_) * power(keep_, intervals - 1) : 0;
  return {.value = alpha_.value * power(keep_, intervals) + added,
          .since = alpha_.since + intervals * alpha_interval_ns_};
}

void Dcqcn::begin(TimeNs now) {
  limited_ = true;
  alpha_ = {.value = parameters_.initial_alpha_of_1024 / kAlphaOne, .since = now};
  if (parameters_.first_rate_mbps != 0)
    current_bps_ = std::min(max_bps_, parameters_.first_rate_mbps * kBitsPerMbit);
  target_bps_ = current_bps_;
}

void Dcqcn::on_cnp(TimeNs now) {
  on_timer(now);
  const bool first = !limited_;
  if (first) begin(now);
  alpha_ = alpha_at(now);
  const TimeNs period_ns = ns_of(parameters_.monitor_period_us);
  if (period_ns == 0) {
    decrease(now);
    alpha_.value = keep_ * alpha_.value + (1 - keep_);
    alpha_.since = now;
    return;
  }
  cnp_came_ = true;
  alpha_.cnp_came = !first;
  if (first) period_ends_ = now;
  if (period_ends_ <= now) period_ends_ += ((now - period_ends_) / period_ns + 1) * period_ns;
}

void Dcqcn::decrease(TimeNs now) {
  const bool clamp = parameters_.clamp_target != 0 ||
                     (parameters_.clamp_target_after_time != 0 && stages_.by_time != 0);
  if (clamp) target_bps_ = current_bps_;
  const double part =
      alpha_.value * kAlphaOne / static_cast<double>(1u << unsigned(parameters_.gd));
  const double factor = std::max(1 - part, parameters_.min_dec_percent / 100);
  current_bps_ =
      std::max(current_bps_ * factor, std::min(max_bps_, parameters_.min_rate_mbps * kBitsPerMbit));
  stages_ = {.timer = now + ns_of(parameters_.time_reset_us)};
}

void Dcqcn::increase() {
  const auto threshold = static_cast<uint32_t>(parameters_.threshold);
  const bool by_bytes = parameters_.byte_reset != 0;
  const uint32_t most = by_bytes ? std::max(stages_.by_time, stages_.by_bytes) : stages_.by_time;
  const uint32_t least = by_bytes ? std::min(stages_.by_time, stages_.by_bytes) : stages_.by_time;
  if (least > threshold) {
    target_bps_ += parameters_.hai_rate_mbps * kBitsPerMbit;
  } else if (most >= threshold) {
    target_bps_ += parameters_.ai_rate_mbps * kBitsPerMbit;
  }
  target_bps_ = std::min(target_bps_, max_bps_);
  current_bps_ = (current_bps_ + target_bps_) / 2;
}

// Rule 5.
void Dcqcn::end() {
  if (current_bps_ < kAsAtFirst * max_bps_) return;
  limited_ = cnp_came_ = false;
  current_bps_ = target_bps_ = max_bps_;
  period_ends_ = kNever;
  stages_ = {};
}

void Dcqcn::on_sent(TimeNs, uint32_t bytes) {
  if (!limited_ || parameters_.byte_reset == 0) return;
  stages_.bytes += bytes;
  const auto reset = static_cast<uint64_t>(parameters_.byte_reset);
  while (limited_ && stages_.bytes >= reset) {
    stages_.bytes -= reset;
    increase();
    ++stages_.by_bytes;
    end();
  }
}

void Dcqcn::on_timer(TimeNs now) {
  while (limited_ && deadline() <= now) {
    if (cnp_came_ && period_ends_ <= stages_.timer) {
      const TimeNs at = period_ends_;
      period_ends_ += ns_of(parameters_.monitor_period_us);
      alpha_ = alpha_at(at);
      decrease(at);
      cnp_came_ = false;
    } else {
      stages_.timer += ns_of(parameters_.time_reset_us);
      increase();
      ++stages_.by_time;
      end();
    }
  }
}

TimeNs Dcqcn::deadline() const {
  return std::min(stages_.timer, cnp_came_ ? period_ends_ : kNever);
}

uint64_t Dcqcn::rate_bps() const { return static_cast<uint64_t>(current_bps_); }

std::vector<NamedValue> Dcqcn::view(TimeNs now) const {
  return {{"target_rate", target_bps_ / kBitsPerMbit},
          {"alpha", limited_ ? alpha_at(now).value : 0},
          {"time_stage", static_cast<double>(stages_.by_time)},
          {"byte_stage", static_cast<double>(stages_.by_bytes)},
          {"limited", limited_ ? 1.0 : 0.0}};
}

namespace {

struct Row {
  Parameter parameter;
  double DcqcnParameters::*field;
  double mlx5;
  double paper;
};

// Names and ranges as NVIDIA documents them for its drivers; fractions of 1024 as there. The paper
// has no value for hyper increase, for which its authors' simulator has 200 Mbit/s.
const std::vector<Row>& rows() {
  using P = DcqcnParameters;
  static const std::vector<Row> all{
      {{"rpg_time_reset", "us", 1, 131071, false}, &P::time_reset_us, 300, 55},
      {{"rpg_byte_reset", "bytes", 0, 4294967295, true}, &P::byte_reset, 32767, 10'000'000},
      {{"rpg_threshold", "", 1, 31, true}, &P::threshold, 1, 5},
      {{"rpg_max_rate", "Mbit/s", 0, 1e7, false}, &P::max_rate_mbps, 0, 0},
      {{"rpg_ai_rate", "Mbit/s", 0.001, 1e7, false}, &P::ai_rate_mbps, 5, 40},
      {{"rpg_hai_rate", "Mbit/s", 0.001, 1e7, false}, &P::hai_rate_mbps, 50, 200},
      {{"rpg_gd", "", 0, 15, true}, &P::gd, 11, 11},
      {{"rpg_min_dec_fac", "%", 1, 100, true}, &P::min_dec_percent, 50, 50},
      {{"rpg_min_rate", "Mbit/s", 0.001, 1e7, false}, &P::min_rate_mbps, 1, 1},
      {{"rate_to_set_on_first_cnp", "Mbit/s", 0, 1e7, false}, &P::first_rate_mbps, 0, 0},
      {{"dce_tcp_g", "", 0, 1023, false}, &P::g_of_1024, 1019, 1020},
      {{"dce_tcp_rtt", "us", 1, 131071, false}, &P::alpha_interval_us, 1, 55},
      {{"rate_reduce_monitor_period", "us", 0, 131071, false}, &P::monitor_period_us, 4, 0},
      {{"initial_alpha_value", "", 0, 1024, false}, &P::initial_alpha_of_1024, 1023, 1024},
      {{"clamp_tgt_rate", "", 0, 1, true}, &P::clamp_target, 0, 1},
      {{"clamp_tgt_rate_after_time_inc", "", 0, 1, true}, &P::clamp_target_after_time, 1, 1}};
  return all;
}

std::unique_ptr<Algorithm> make(std::span<const double> values, const Flow& flow) {
  DcqcnParameters parameters{};
  for (size_t i = 0; i < values.size(); ++i) parameters.*rows()[i].field = values[i];
  return std::make_unique<Dcqcn>(parameters, flow);
}

}  // namespace

std::shared_ptr<const AlgorithmKind> dcqcn() {
  AlgorithmKind kind{.name = "dcqcn", .needs = {.ecn = true}, .make = make};
  Preset mlx5{"mlx5", {}, 4};
  Preset paper{"paper", {}, 50};
  for (const Row& row : rows()) {
    kind.parameters.push_back(row.parameter);
    mlx5.values.push_back(row.mlx5);
    paper.values.push_back(row.paper);
  }
  kind.presets = {mlx5, paper};
  return std::make_shared<AlgorithmKind>(std::move(kind));
}

}  // namespace rocemu::congestion
