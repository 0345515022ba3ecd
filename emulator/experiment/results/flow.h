// The record of a flow, complete when the flow or the experiment is over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "emulator/experiment/settings/experiment.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::experiment {

enum class FlowState : uint8_t {
  open,       // when the experiment ended
  completed,  // the sender's program has its completion
  failed,     // its QP went to ERROR
};

struct Flow {
  TimeNs start_ns = 0;
  TimeNs end_ns = kNever;    // when it completed, or the experiment ended
  uint64_t bytes = 0;        // 0: it had no end of its own
  uint64_t moved_bytes = 0;  // payload that came to the other end
  uint64_t warm_bytes = 0;   // part of moved_bytes before the warm-up was over
  uint64_t tag = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t connection = 0;
  uint8_t workload = 0;
  Verb verb = Verb::write;
  bool lasting = false;
  FlowState state = FlowState::open;
};

}  // namespace rocemu::experiment
