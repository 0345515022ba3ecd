// Flows that begin at random between random hosts, as often as makes up a load.
#pragma once

#include "emulator/experiment/workload/exponential.h"
#include "emulator/experiment/workload/workload.h"

namespace rocemu::experiment {

class Poisson final : public Workload {
 public:
  // The load is payload over what the hosts' links carry.
  Poisson(const WorkloadSettings& settings, uint64_t seed, uint64_t hosts_bits_per_s)
      : settings_(settings), random_(seed), at_(static_cast<Parts>(settings.at_ns) << kPartBits) {
    const Parts bits_in_a_second = static_cast<Parts>(hosts_bits_per_s) * settings.load_ppm;
    mean_gap_ = static_cast<uint64_t>(
        (static_cast<Parts>(settings.sizes.mean_bytes()) * 8'000'000 << kPartBits) * 1'000'000'000 /
        bits_in_a_second);
    advance();
  }

  TimeNs next() const override { return next_; }
  void begin(TimeNs, FlowStarter& starter) override {
    const std::vector<uint32_t>& hosts = settings_.hosts;
    const uint64_t from = random_.below(hosts.size());
    const uint64_t to = (from + 1 + random_.below(hosts.size() - 1)) % hosts.size();
    starter.start({.from = hosts[from],
                   .to = hosts[to],
                   .bytes = settings_.sizes.draw(random_),
                   .verb = settings_.verb});
    advance();
  }

 private:
  // Parts of a nanosecond, so that gaps of a few nanoseconds are no multiples of one.
  using Parts = unsigned __int128;
  static constexpr unsigned kPartBits = 16;

  void advance() {
    at_ += exponential(mean_gap_, random_);
    const auto at = static_cast<TimeNs>(at_ >> kPartBits);
    next_ = at < settings_.until_ns ? at : kNever;
  }

  WorkloadSettings settings_;
  Random random_;
  Parts at_;
  uint64_t mean_gap_;
  TimeNs next_ = kNever;
};

}  // namespace rocemu::experiment
