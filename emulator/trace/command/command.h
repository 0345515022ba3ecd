// `rocemu trace`: begins and ends the trace of a NIC that is up.
#pragma once

#include <string>
#include <vector>

namespace rocemu::trace {

// `arguments` without "trace". Returns the exit code; throws cli::Failure and cli::PrintAndExit.
int run(const std::vector<std::string>& arguments);

}  // namespace rocemu::trace
