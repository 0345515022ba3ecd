// One scenario from its seed to its verdict.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/trace/format/reader.h"

namespace rocemu::sim_scenarios {

struct Outcome {
  std::string failure;  // empty: all invariants held
  uint64_t frames = 0;
  uint64_t requests = 0;
  uint64_t virtual_ns = 0;
  bool failed_connection = false;  // as it was allowed to
};

// `print`: every frame and completion to standard output. `record`, if not null, gets what
// happened.
Outcome run_scenario(uint64_t seed, bool print, trace::Trace* record = nullptr);

}  // namespace rocemu::sim_scenarios
