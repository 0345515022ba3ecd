// A program that is checked: what it needs before, and what is made of its findings after.
#pragma once

#include <filesystem>

#include "emulator/cli/findings/check_options.h"
#include "emulator/cli/process/process_environment.h"

namespace rocemu::cli {

// The variables that have programs checked. `folder` is where they leave findings.
void add_check_variables(Environment& environment, const Installation& installation,
                         const CheckOptions& options, const std::filesystem::path& folder);

// Its folder for findings is there as long as this is. Does nothing where nothing is to be checked.
class CheckedProgram {
 public:
  // Throws Failure (own failure) when there is no room for a folder, or the report can't be written
  // where it is to be.
  explicit CheckedProgram(CheckOptions options);
  ~CheckedProgram();
  CheckedProgram(const CheckedProgram&) = delete;
  CheckedProgram& operator=(const CheckedProgram&) = delete;

  bool is_checked() const { return options_.wanted(); }
  void add_variables(Environment& environment, const Installation& installation) const;

  // When all of its processes have ended: a line of summary on standard error, the report, and the
  // command's exit code, of which `code` is the program's.
  int finish(int code) const;
  // Before that: `folder` has these findings, too, after its own.
  void add_findings_to(const std::filesystem::path& folder) const;

 private:
  const CheckOptions options_;
  std::filesystem::path folder_;
};

}  // namespace rocemu::cli
