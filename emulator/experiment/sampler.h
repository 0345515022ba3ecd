// Looks at queues, pauses and rates every interval.
#pragma once

#include <vector>

#include "emulator/experiment/cluster/cluster.h"
#include "emulator/experiment/results/flow.h"
#include "emulator/experiment/results/series.h"

namespace rocemu::experiment {

class Sampler {
 public:
  Sampler(const Experiment& experiment, const Cluster& cluster);

  // kNever when nothing is to be looked at.
  TimeNs next() const { return next_; }
  void sample(TimeNs now, const std::vector<Flow>& flows);
  void begin_flow(uint32_t flow) { active_.push_back({flow, 0}); }
  Series& series() { return series_; }

 private:
  struct SeenPort {
    uint32_t port;
    bool has_queue;  // false at a host, where only the next frame waits (cluster.h)
    uint64_t queue_bytes = 0;
    uint64_t pauses_sent = 0;
    TimeNs paused_ns = 0;
  };
  struct SeenFlow {
    uint32_t flow;
    uint64_t moved_bytes;
  };
  void look_at(SeenPort& seen, TimeNs now);

  const Cluster& cluster_;
  TimeNs interval_ns_;
  TimeNs next_;
  std::vector<SeenPort> ports_;
  std::vector<SeenFlow> active_;
  Series series_;
};

}  // namespace rocemu::experiment
