#include "emulator/experiment/workload/workload.h"

#include "emulator/experiment/workload/allreduce.h"
#include "emulator/experiment/workload/patterns.h"
#include "emulator/experiment/workload/poisson.h"

namespace rocemu::experiment {

namespace {

// The flows of a trace, which stand in the order of their times.
class Trace final : public Workload {
 public:
  explicit Trace(const WorkloadSettings& settings)
      : flows_(settings.trace), at_ns_(settings.at_ns), until_ns_(settings.until_ns) {}

  TimeNs next() const override {
    if (done_ == flows_.size()) return kNever;
    const TimeNs at = at_ns_ + flows_[done_].start_ns;
    return at < until_ns_ ? at : kNever;
  }
  void begin(TimeNs, FlowStarter& starter) override {
    const TracedFlow& flow = flows_[done_++];
    starter.start({.from = flow.from, .to = flow.to, .bytes = flow.bytes, .verb = flow.verb});
  }

 private:
  std::vector<TracedFlow> flows_;
  TimeNs at_ns_;
  TimeNs until_ns_;
  size_t done_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, uint64_t seed,
                                        uint64_t hosts_bits_per_s) {
  switch (settings.kind) {
    case WorkloadKind::incast:
      return std::make_unique<Incast>(settings);
    case WorkloadKind::permutation:
      return std::make_unique<Permutation>(settings, seed);
    case WorkloadKind::all_to_all:
      return std::make_unique<AllToAll>(settings);
    case WorkloadKind::ring_allreduce:
      return std::make_unique<RingAllreduce>(settings);
    case WorkloadKind::tree_allreduce:
      return std::make_unique<TreeAllreduce>(settings);
    case WorkloadKind::poisson:
      return std::make_unique<Poisson>(settings, seed, hosts_bits_per_s);
    case WorkloadKind::trace:
      return std::make_unique<Trace>(settings);
  }
  return nullptr;
}

}  // namespace rocemu::experiment
