// Algorithms in shared libraries that people bring: include/rocemu/congestion.h is what such a
// library implements.
#pragma once

#include <memory>
#include <string>

#include "emulator/congestion/algorithm_kind.h"

namespace rocemu::congestion {

struct LoadedPlugin {
  std::shared_ptr<const AlgorithmKind> kind;  // null: see error
  std::string error;                          // one line that names the file
};

// Loads the library, which stays loaded. Its code has all rights of this process; what it says of
// itself is checked, what it does is not.
LoadedPlugin load_plugin(const std::string& path);

}  // namespace rocemu::congestion
