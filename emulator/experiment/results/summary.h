// The figures of an experiment, as JSON.
#pragma once

#include <string>
#include <vector>

#include "emulator/experiment/results/outcome.h"

namespace rocemu::experiment {

// `ideal_ns`: of each flow that has a size.
std::string summary_of(const Experiment& experiment, const Outcome& outcome,
                       const std::vector<TimeNs>& ideal_ns);

// The most important of them, for people: "12 of 12 flows completed, ... in "
std::string one_line(const Experiment& experiment, const Outcome& outcome);

}  // namespace rocemu::experiment
