// All that an experiment leaves behind, before it is written down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "emulator/experiment/results/flow.h"
#include "emulator/experiment/results/series.h"
#include "emulator/transport/interface/counters.h"
#include "network/switching/report.h"

namespace rocemu::experiment {

struct Outcome {
  TimeNs ended_ns = 0;
  bool partial = false;  // it was ended before it was over
  std::vector<Flow> flows;
  Series series;
  transport::Counters nics;  // sum over all NICs
  uint64_t frames_delivered = 0;
  uint64_t cut_frames = 0;
  std::vector<network::PortReport> ports;  // by number
};

}  // namespace rocemu::experiment
