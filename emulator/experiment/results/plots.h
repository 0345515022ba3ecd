// The diagrams of an experiment: slowdown by size, the longest queues and the largest flows with
// time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "emulator/experiment/results/outcome.h"

namespace rocemu::experiment {

// Names of files and what is in them; of what there is nothing to show, none.
std::vector<std::pair<std::string, std::string>> plots_of(const Experiment& experiment,
                                                          const Outcome& outcome,
                                                          const std::vector<TimeNs>& ideal_ns);

}  // namespace rocemu::experiment
