// One process of the stress program.
#pragma once

#include <string>

#include "tests/e2e/stress/board.h"

namespace rocemu::e2e {

// Runs this process's ends on that device until all processes are through. Throws Failure.
void run_process(const StressOptions& options, Board& board, uint32_t process,
                 const std::string& device);

}  // namespace rocemu::e2e
