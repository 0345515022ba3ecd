// Finds what keeps programs from the NIC's libraries, as far as their files tell.
#pragma once

#include <string>

namespace rocemu::cli {

struct Obstacle {
  // Says which file it is, why, and what that means; empty when nothing speaks against the program.
  std::string text;
  bool refuses_preload = false;  // with LD_PRELOAD the program would not even start
};

// Looks at the file of the program, a path or a name to be found in PATH, and of a script at its
// interpreter's: it may name a loader that is not glibc's, or none, or one that leaves LD_PRELOAD
// aside.
Obstacle find_obstacle(const std::string& program);

}  // namespace rocemu::cli
