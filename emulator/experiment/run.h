// An experiment at work: flows begin, frames move, results are looked at, until all is over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/experiment/cluster/cluster.h"
#include "emulator/experiment/results/outcome.h"
#include "emulator/experiment/sampler.h"
#include "emulator/experiment/workload/workload.h"

namespace rocemu::experiment {

class Run final : private FlowStarter {
 public:
  // `experiment` outlives the run.
  explicit Run(const Experiment& experiment);

  // Goes on until all is over, or `stop` says so, which is asked now and then with the time that it
  // is. An exception of `stop` ends the run, too.
  void go(const std::function<bool(TimeNs now, uint64_t flows_over)>& stop);

  // Precondition: go() has returned.
  Outcome outcome();

 private:
  static constexpr uint64_t kEndlessMessageBytes = 1'000'000;  // two of which are posted
  static constexpr uint64_t kLargestPostBytes = 1u << 30;

  void start(const FlowSpec& spec) override;
  ConnectionId connection_of(const FlowSpec& spec);
  void post(uint32_t flow);
  void hear(const Told& told);
  void end_flow(uint32_t number, FlowState state);
  void begin_workloads();
  TimeNs next_begin() const;
  bool is_over() const;
  void note_warm();

  const Experiment& experiment_;
  Cluster cluster_;
  Sampler sampler_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<Flow> flows_;
  std::map<std::pair<uint32_t, uint32_t>, ConnectionId> lasting_;
  std::vector<Told> heard_;
  TimeNs now_ = 0;
  uint8_t beginning_ = 0;  // the workload that is told of something
  uint64_t open_ = 0;      // flows that have a size
  uint64_t over_ = 0;
  bool warm_ = false;
  bool partial_ = false;
};

}  // namespace rocemu::experiment
