// The name of a process, as /proc/PID/comm has it. Whoever runs the program chooses it.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace rocemu {

// Empty when there is no such process, or none that this one can see.
inline std::string program_name(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace rocemu
