// `rocemu sim`: an experiment's file in, results out, once or for each point of a sweep.
#pragma once

#include <string>
#include <vector>

namespace rocemu::experiment {

// `arguments`: those behind `rocemu sim`. Returns the exit code, or throws cli::Failure.
int sim(const std::vector<std::string>& arguments);

}  // namespace rocemu::experiment
