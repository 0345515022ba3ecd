// rocemu: the command people type. What it does is in cli/; lab, sim, script and trace have folders
// of their own.
#include <algorithm>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/cli/commands.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/signals.h"
#include "emulator/experiment/command/sim.h"
#include "emulator/lab/lab.h"
#include "emulator/script/command.h"
#include "emulator/trace/command/command.h"

namespace rocemu::cli {

namespace {

// Subcommands that read their arguments themselves.
struct OwnCommandLine {
  const char* name;
  int (*run)(const std::vector<std::string>& arguments);
};
constexpr OwnCommandLine kOwnCommandLines[] = {
    {"lab", lab::run}, {"script", script::run}, {"sim", experiment::sim}, {"trace", trace::run}};

int dispatch(const Options& options) {
  switch (options.command) {
    case Command::kRun:
      return run(options);
    case Command::kUp:
      return up(options);
    case Command::kExec:
      return exec(options);
    case Command::kStatus:
      return status(options);
    case Command::kMetrics:
      return metrics(options);
    case Command::kTop:
      return show_top(options);
    case Command::kDown:
      return down(options);
    case Command::kEnv:
      return env(options);
    case Command::kLinkSet:
      return link_set(options);
    case Command::kLinkShow:
      return link_show(options);
    case Command::kFault:
      return fault(options);
    case Command::kFindings:
      return findings(options);
    case Command::kVersion:
      return version(options);
  }
  return kFailure;
}

// The exit code for a failure that is rocemu's own.
int exit_code_for(const Options& options, int code) {
  const bool about_program = code == kNotExecutable || code == kNotFound;
  return hands_on_status(options.command) && !about_program ? kOwnFailure : code;
}

int run_command(const std::vector<std::string>& arguments, const OwnCommandLine* own,
                Options& options) {
  try {
    if (own != nullptr) return own->run({arguments.begin() + 1, arguments.end()});
    options = parse_options(arguments);
    return dispatch(options);
  } catch (const PrintAndExit& request) {
    std::cout << request.text;
    return kSuccess;
  }
}

int main_with(const std::vector<std::string>& arguments) {
  Options options;
  const std::string first = arguments.empty() ? "" : arguments.front();
  const auto* const own = std::ranges::find(kOwnCommandLines, first, &OwnCommandLine::name);
  const bool is_own = own != std::end(kOwnCommandLines);
  const std::string about = is_own ? first + ": " : "";
  try {
    const int code = run_command(arguments, is_own ? own : nullptr, options);
    if (code == kSuccess) require_printed();
    return code;
  } catch (const Interrupted& interrupted) {
    return kSignalBase + interrupted.signal;
  } catch (const Failure& failure) {
    complain(about + failure.what());
    return exit_code_for(options, failure.exit_code());
  } catch (const std::exception& error) {
    complain(about + error.what());
    return exit_code_for(options, kFailure);
  }
}

}  // namespace
}  // namespace rocemu::cli

int main(int argc, char** argv) {
  return rocemu::cli::main_with(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
