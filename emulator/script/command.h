// `rocemu script`: plays scripts.
#pragma once

#include <string>
#include <vector>

namespace rocemu::script {

// `arguments` are what comes after "rocemu script". Returns the exit code. Throws cli::Failure.
int run(const std::vector<std::string>& arguments);

}  // namespace rocemu::script
