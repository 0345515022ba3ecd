// A sweep: an experiment once for each combination of values, each in a process and a directory of
// its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::experiment {

// KEY=A,B,C
struct SweptKey {
  std::string key;
  std::vector<std::string> values;
};
// Throws cli::Failure for what is none.
SweptKey parse_swept_key(const std::string& text);

struct Sweep {
  std::filesystem::path experiment;
  std::filesystem::path out;
  std::vector<std::string> settings;  // KEY=VALUE, for all points
  std::vector<SweptKey> keys;
  unsigned jobs = 1;
  bool quiet = false;
};

// One command for each point, as words; the last key changes fastest. The program's name is the
// first word.
std::vector<std::vector<std::string>> commands_of(const Sweep& sweep, const std::string& program);

// A line for the shell.
std::string shell_line(const std::vector<std::string>& command);

// Runs them, `jobs` at a time. Returns the exit code: of the first point that failed, if one did.
int run_sweep(const Sweep& sweep);

}  // namespace rocemu::experiment
