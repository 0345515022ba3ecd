// A flow of a program, and the counters that it counts with (ibv_create_flow(3),
// ibv_create_counters(3)).
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/transport/interface/flow.h"

namespace rocemu::device {

struct Qp;

struct Counters {
  transport::FlowCounters counts;
  uint32_t users = 0;  // flows
};

struct OpenFlow {
  transport::Flow flow;  // stands in the endpoint's table
  std::vector<Qp*> qps;
  Counters* counters = nullptr;
};

}  // namespace rocemu::device
