// Starting the program that is to use the NIC, as env(1) would.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "emulator/cli/process/process_environment.h"
#include "emulator/cli/process/signals.h"

namespace rocemu::cli {

// Replaces this process. Throws Failure (not found, not executable) when that does not work.
[[noreturn]] void exec_program(const std::vector<std::string>& program,
                               const Environment& environment);

// Starts it as a child in this process group, so that terminal, stdin and job control are its own.
// With `output` it has no stdin, and writes there what it says. Throws Failure as exec_program
// does.
pid_t spawn_program(const std::vector<std::string>& program, const Environment& environment,
                    const SignalWatch& signals, int output = -1);

// The exit code for a status of waitpid(2): the program's own, or 128 and the signal's number.
int exit_code_of(int wait_status);

}  // namespace rocemu::cli
