// DCQCN's reaction point, step by step, for fixed series of CNPs: against the rules of the paper by
// hand, and against those of NVIDIA's parameters as a model that ticks every microsecond.
#include "emulator/congestion/dcqcn.h"

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>

#include "emulator/congestion/settings.h"
#include "tests/unit/time_units.h"

namespace rocemu::congestion {

namespace {

constexpr uint64_t kLineBps = 40'000'000'000;

std::unique_ptr<Algorithm> make(const std::string& settings) {
  const ParsedSettings parsed = parse_settings(settings);
  INFO(parsed.error);
  REQUIRE(parsed.settings);
  return parsed.settings->make({.line_rate_bps = kLineBps, .max_frame_bytes = 1100});
}

// Runs its timers up to and including `until`, each in its time.
void run(Algorithm& algorithm, TimeNs until) {
  while (algorithm.deadline() <= until) algorithm.on_timer(algorithm.deadline());
}

double value(const Algorithm& algorithm, const std::string& name, TimeNs now = 0) {
  for (const NamedValue& shown : algorithm.view(now))
    if (shown.name == name) return shown.value;
  FAIL("there is no " + name);
  return 0;
}

double rate_mbps(const Algorithm& algorithm) {
  return static_cast<double>(algorithm.rate_bps()) / 1e6;
}

// One moment of a series: what happens, and the rates then.
struct Step {
  TimeNs at_us;
  bool cnp;
  double rate_mbps;
  double target_mbps;
};

void follow(Algorithm& algorithm, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    INFO("at " << step.at_us << " us");
    run(algorithm, step.at_us * kUs);
    if (step.cnp) algorithm.on_cnp(step.at_us * kUs);
    CHECK(rate_mbps(algorithm) == Approx(step.rate_mbps).epsilon(1e-9));
    CHECK(value(algorithm, "target_rate") == Approx(step.target_mbps).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("dcqcn: without a CNP a flow has the line's rate and no timer") {
  const auto flow = make("dcqcn:paper");
  CHECK(flow->rate_bps() == kLineBps);
  CHECK(flow->deadline() == kNever);
  for (int i = 0; i < 100; ++i) flow->on_sent(i, 1'000'000);
  CHECK(flow->rate_bps() == kLineBps);
}

TEST_CASE("dcqcn:paper: a CNP halves the rate, five timers bring it back, then it grows by 40") {
  const auto flow = make("dcqcn:paper");
  follow(*flow, {{100, true, 20'000, 40'000},
                 {150, true, 10'000, 20'000},
                 // Fast recovery, every 55 us.
                 {204, false, 10'000, 20'000},
                 {205, false, 15'000, 20'000},
                 {260, false, 17'500, 20'000},
                 {315, false, 18'750, 20'000},
                 {370, false, 19'375, 20'000},
                 {425, false, 19'687.5, 20'000},
                 // Additive increase.
                 {480, false, 19'863.75, 20'040},
                 {535, false, 19'971.875, 20'080}});
  // Alpha has decayed in the seven times 55 us since the last CNP.
  double alpha = 1;
  for (int i = 0; i < 7; ++i) alpha *= 1020.0 / 1024;
  follow(*flow, {{540, true, 19'971.875 * (1 - alpha / 2), 19'971.875}});
  CHECK(value(*flow, "alpha") == Approx(alpha * 1020 / 1024 + 4.0 / 1024).epsilon(1e-12));
}

TEST_CASE("dcqcn:paper: bytes raise the rate as the timer does, both together faster") {
  const auto flow = make("dcqcn:paper");
  flow->on_cnp(0);
  const auto send = [&] { flow->on_sent(1, 10'000'000); };
  // The first came down from the line's rate, which is the target.
  for (double expected : {30'000.0, 35'000.0, 37'500.0, 38'750.0, 39'375.0}) {
    send();
    CHECK(rate_mbps(*flow) == Approx(expected));
  }
  // A second CNP, and both stages are beyond five: hyper increase.
  flow->on_cnp(10 * kUs);
  run(*flow, (10 + 6 * 55) * kUs);
  CHECK(value(*flow, "time_stage") == 6);
  for (int i = 0; i < 6; ++i) send();
  CHECK(value(*flow, "byte_stage") == 6);
  const double target = value(*flow, "target_rate");
  send();
  CHECK(value(*flow, "target_rate") == Approx(std::min(40'000.0, target + 200)));
}

TEST_CASE("dcqcn: a flow that is back at the line's rate is as at first") {
  const auto flow = make("dcqcn:paper");
  flow->on_cnp(0);
  run(*flow, 20 * 55 * kUs);
  CHECK(flow->rate_bps() == kLineBps);
  CHECK(flow->deadline() == kNever);
  CHECK(value(*flow, "limited") == 0);
  follow(*flow, {{2000, true, 20'000, 40'000}});
}

TEST_CASE("dcqcn: no rate is below rpg_min_rate, and none falls by more than rpg_min_dec_fac") {
  const auto flow = make("dcqcn:paper,rpg_min_rate=100,rpg_min_dec_fac=80");
  flow->on_cnp(0);
  CHECK(rate_mbps(*flow) == 32'000);
  for (TimeNs i = 1; i < 40; ++i) flow->on_cnp(i);
  CHECK(rate_mbps(*flow) == 100);
}

TEST_CASE("dcqcn: the first CNP may set a rate, and a rate may be the most there is") {
  const auto flow = make("dcqcn:mlx5,rate_to_set_on_first_cnp=1000,rpg_max_rate=10000");
  CHECK(rate_mbps(*flow) == 10'000);
  flow->on_cnp(0);
  CHECK(rate_mbps(*flow) == 1'000);
}

namespace {

// The published rules of NVIDIA's parameters, as a model that looks at everything each microsecond:
// alpha first, then the decrease, then the increase.
class Ticking {
 public:
  void on_cnp(TimeNs now_us) {
    if (!began_us_) {
      began_us_ = now_us;
      for_decrease_ = true;
      return;
    }
    for_alpha_ = for_decrease_ = true;
  }
  // Ends the microsecond before `now_us`. CNPs come between two ticks.
  void tick(TimeNs now_us) {
    if (!began_us_ || now_us == *began_us_) return;
    alpha_ = alpha_ * 1019 / 1024 + (for_alpha_ ? 5.0 / 1024 : 0);
    for_alpha_ = false;
    if ((now_us - *began_us_) % 4 == 0 && for_decrease_) {
      if (stage_ != 0) target = rate;
      rate = std::max(1.0, rate * (1 - alpha_ / 2));
      stage_ = 0;
      timer_us_ = now_us + 300;
      for_decrease_ = false;
    } else if (timer_us_ == now_us) {
      if (stage_ > 1) target += 50;
      if (stage_ == 1) target += 5;
      target = std::min(target, 40'000.0);
      rate = (rate + target) / 2;
      ++stage_;
      timer_us_ += 300;
    }
  }

  double rate = 40'000;
  double target = 40'000;
  double alpha() const { return alpha_; }

 private:
  std::optional<TimeNs> began_us_;
  double alpha_ = 1023.0 / 1024;
  bool for_alpha_ = false;
  bool for_decrease_ = false;
  unsigned stage_ = 0;
  TimeNs timer_us_ = 0;
};

}  // namespace

TEST_CASE("dcqcn:mlx5: a fixed series of CNPs leads to the rates of the published rules") {
  // A burst, single ones, a long silence, and one that comes just before the timer.
  const std::set<TimeNs> cnps{10, 11, 12, 15, 30, 31, 62, 400, 900, 901, 2500, 2799, 3101, 3500};
  const auto flow = make("dcqcn:mlx5,rpg_byte_reset=0");
  Ticking rules;
  for (TimeNs us = 0; us < 5000; ++us) {
    INFO("at " << us << " us");
    run(*flow, us * kUs);
    rules.tick(us);
    REQUIRE(rate_mbps(*flow) == Approx(rules.rate).epsilon(1e-6));
    REQUIRE(value(*flow, "target_rate") == Approx(rules.target).epsilon(1e-9));
    if (!cnps.contains(us)) continue;
    flow->on_cnp(us * kUs);
    rules.on_cnp(us);
  }
  CHECK(rate_mbps(*flow) < 40'000);
  rules.tick(5000);
  CHECK(value(*flow, "alpha", 5000 * kUs) == Approx(rules.alpha()).epsilon(1e-9));
}

TEST_CASE("dcqcn: a timer that comes late changes nothing but when it is seen") {
  const auto punctual = make("dcqcn:mlx5");
  const auto late = make("dcqcn:mlx5");
  for (const auto* flow : {&punctual, &late}) (*flow)->on_cnp(0);
  run(*punctual, 5'000 * kUs);
  late->on_timer(5'000 * kUs);
  CHECK(late->rate_bps() == punctual->rate_bps());
  CHECK(late->deadline() == punctual->deadline());
}

}  // namespace rocemu::congestion
