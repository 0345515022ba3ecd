// The files of a result. Same experiment and seed, same bytes: numbers in them are whole, or
// quotients of whole ones to three places.
#pragma once

#include <filesystem>

#include "emulator/experiment/results/outcome.h"

namespace rocemu::experiment {

// Makes the directory, and all files in it. Throws std::runtime_error naming what could not be
// written.
void write_results(const Experiment& experiment, const Outcome& outcome,
                   const std::filesystem::path& directory);

}  // namespace rocemu::experiment
