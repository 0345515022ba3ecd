// The environment (environ(7)) of a program that is to see the NIC, and that of the daemon, which
// is not to see one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/cli/process/installation.h"

namespace rocemu::cli {

using Environment = std::vector<std::string>;  // "NAME=value", as in environ(7)

Environment current_environment();

// Returns the value of `name`, or an empty view when it is not set.
std::string_view get(const Environment& environment, std::string_view name);
void set(Environment& environment, std::string_view name, std::string_view value);
void unset(Environment& environment, std::string_view name);

// Returns LD_PRELOAD with `library` in it: in front of what is there, but after the run-time
// libraries of sanitizers, which refuse to run unless they are first. A second mention is dropped.
std::string preload_list(std::string_view existing, const std::filesystem::path& library);

// Returns a sanitizer's options with `name`=0 at their end, unless they say something of it
// already.
std::string without_option(std::string_view existing, std::string_view name);

// Returns the variables that show the NIC in `state_dir` to a program, computed from what it has
// already.
std::vector<std::pair<std::string, std::string>> nic_variables(
    const Environment& environment, const Installation& installation,
    const std::filesystem::path& state_dir);

// Returns the environment with those variables. With `share_memory` the memory that the program
// registers may be made shared memory; without it the variable that says so stays as it is.
Environment for_program(Environment environment, const Installation& installation,
                        const std::filesystem::path& state_dir, bool share_memory = false);

// Takes out an outer NIC's state directory (`rocemu run` inside `rocemu run`) and what the loader
// is told about libraries: that is for programs, whose libibverbs may be none that DPDK can use.
Environment for_daemon(Environment environment);

// Quotes `value` for a POSIX shell.
std::string shell_quoted(std::string_view value);

// Returns pointers into `strings`, ended by a null pointer, as execve wants them.
std::vector<char*> as_exec_array(const std::vector<std::string>& strings);

}  // namespace rocemu::cli
