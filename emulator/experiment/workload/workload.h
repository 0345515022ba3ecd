// A workload says which flows begin and when. It knows hosts by their numbers and time by what it
// is told; it knows neither NIC nor network.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "base/time.h"
#include "emulator/experiment/settings/experiment.h"

namespace rocemu::experiment {

struct FlowSpec {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;  // 0: it goes on until the end
  Verb verb = Verb::write;
  bool lasting = false;  // over the connection that the two hosts keep, in the order of its flows
  uint64_t tag = 0;      // the workload's own
};

class FlowStarter {
 public:
  virtual ~FlowStarter() = default;
  virtual void start(const FlowSpec& flow) = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  // The time at which it has flows to begin by itself; kNever when only the end of others can bring
  // some.
  virtual TimeNs next() const = 0;
  // Begins them. Called at next().
  virtual void begin(TimeNs now, FlowStarter& starter) = 0;
  // The data of one of its flows has come to the other end (write_imm alone).
  virtual void on_received(TimeNs, uint64_t /*tag*/, FlowStarter&) {}
  // One of its flows is over, well or not.
  virtual void on_over(TimeNs, uint64_t /*tag*/, FlowStarter&) {}
};

// `hosts_bits_per_s`: what the links of the hosts that take part carry together.
std::unique_ptr<Workload> make_workload(const WorkloadSettings& settings, uint64_t seed,
                                        uint64_t hosts_bits_per_s);

}  // namespace rocemu::experiment
