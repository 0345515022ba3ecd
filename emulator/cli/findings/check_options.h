// The command line's options for checks.
#pragma once

#include <filesystem>
#include <string>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {

struct CheckOptions {
  std::string names;  // as ROCEMU_CHECK has them; empty: nothing is checked
  std::filesystem::path report;
  std::filesystem::path suppressions;
  int exit_code = kFindings;  // the command's when there were findings; 0: the program's own

  bool wanted() const { return !names.empty(); }
};

// The first name of `names` that is none of a check, without the dash before it; empty for none.
std::string unknown_check(const std::string& names);

}  // namespace rocemu::cli
