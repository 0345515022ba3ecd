// Starting the program that is to use the NIC, as env(1) would.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "emulator/cli/process/process_environment.h"
#include "emulator/cli/process/signals.h"

namespace rocemu::cli {

// Replaces this process. Throws Failure (not found, not executable) when that does not work.
[[noreturn]] void exec_program(const std::vector<std::string>& program,
                               const Environment& environment);

// Starts it as a child in this process group, so that terminal, stdin and job control are its own.
// It gets SIGTERM when this process is killed, as by a job that runs out of time; its own children
// do not. With `output` it has no stdin, and writes there what it says. Throws Failure as
// exec_program does.
pid_t spawn_program(const std::vector<std::string>& program, const Environment& environment,
                    const SignalWatch& signals, int output = -1);

// Nothing as long as that child runs, then its exit code: its own, or 128 and the signal's number.
// The child stays a zombie. The NIC has files of the program's in /proc, and closes them now; Linux
// (seen with 6.18) waits for such a file in wait4(2) without a sleep, and kept the NIC of a busy
// machine from its core by that, for a minute and longer.
std::optional<int> exit_code_if_ended(pid_t child);

// Buries children that have ended, when there is no NIC any more: a container's first process may
// never do it.
void bury_children();

}  // namespace rocemu::cli
