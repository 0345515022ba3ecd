// The commands of `rocemu`, each of which returns the exit code or throws Failure, which becomes
// one line on stderr.
#pragma once

#include <string>
#include <vector>

#include "emulator/cli/options.h"
#include "emulator/cli/process/process_environment.h"

namespace rocemu::cli {

// What the commands print with --json (docs/control.md) has this version. It is raised when a field
// changes its meaning or goes, not when one is added.
inline constexpr int kJsonVersion = 1;

int run(const Options& options);
int up(const Options& options);
int exec(const Options& options);
int status(const Options& options);
int metrics(const Options& options);
int show_top(const Options& options);
int down(const Options& options);
int env(const Options& options);
int link_set(const Options& options);
int link_show(const Options& options);
int fault(const Options& options);
int findings(const Options& options);
int version(const Options& options);

// Returns what `rocemu fault --help` says beside the options.
std::string fault_help();

// Prints one line on stderr, with "rocemu: " before it.
void complain(const std::string& message);
// Throws Failure when something that was printed could not be written: a script would take what it
// has got for all.
void require_printed();

// Says in one line why the program cannot see the NIC's devices, where that is so, and lets it
// start nevertheless.
void heed_obstacle(const std::vector<std::string>& program, Environment& environment);

// Returns the options with file names made absolute. Throws Failure (usage) for what can be seen to
// be wrong before rocemud is started.
NicOptions checked(NicOptions options);

// Throws Failure (usage) when the name is one of `rocemu run`'s NICs, which end with their
// programs.
void refuse_private(const std::string& name);

}  // namespace rocemu::cli
