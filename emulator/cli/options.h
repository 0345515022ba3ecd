// The command line of `rocemu`, parsed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/cli/daemon_process.h"

namespace rocemu::cli {

enum class Command { kRun, kUp, kExec, kStatus, kDown, kEnv, kLinkSet, kLinkShow, kVersion };

struct Options {
  Command command = Command::kVersion;
  NicOptions nic;                    // run, up
  bool keep_log = false;             // run
  bool share_memory = false;         // run, exec
  std::string name;                  // empty when not given
  std::filesystem::path socket;      // exec, status, env, link; empty when not given
  bool json = false;                 // up, status, link show, version
  std::vector<std::string> link;     // link set: DEVICE [DIRECTION] SPEC; link show: [DEVICE]
  std::vector<std::string> program;  // run, exec: at least the program's name

  std::string name_or_default() const;
};

// --help or --version was asked for: print this and end with success.
struct PrintAndExit {
  std::string text;
};

// `arguments` without the program's own name. Throws Failure (usage; own failure for run and exec)
// and PrintAndExit.
Options parse_options(const std::vector<std::string>& arguments);

// True for the commands whose exit status is that of a program.
bool hands_on_status(Command command);

std::string version_text();

}  // namespace rocemu::cli
