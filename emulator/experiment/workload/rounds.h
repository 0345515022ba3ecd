// Workloads that come in rounds: each begins a fixed time after the last one, or when that is over.
#pragma once

#include "emulator/experiment/workload/workload.h"

namespace rocemu::experiment {

class Rounds : public Workload {
 public:
  explicit Rounds(const WorkloadSettings& settings) : settings_(settings) {
    set_next(settings.at_ns);
  }

  TimeNs next() const final { return next_; }
  void begin(TimeNs now, FlowStarter& starter) final {
    ++round_;
    set_next(settings_.every_ns == 0 ? kNever : now + settings_.every_ns);
    open_ += begin_round(starter);
  }
  void on_over(TimeNs now, uint64_t, FlowStarter&) final {
    if (--open_ == 0 && settings_.every_ns == 0) set_next(now);
  }

 protected:
  const WorkloadSettings& settings() const { return settings_; }
  // Begins the flows of a round. Returns how many flows it will have had when it is over.
  virtual uint64_t begin_round(FlowStarter& starter) = 0;

 private:
  void set_next(TimeNs at) {
    next_ = round_ < settings_.rounds && at < settings_.until_ns ? at : kNever;
  }

  WorkloadSettings settings_;
  TimeNs next_ = kNever;
  uint32_t round_ = 0;
  uint64_t open_ = 0;
};

}  // namespace rocemu::experiment
