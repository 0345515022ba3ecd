// The options for checks that a NIC was started with, kept for the programs that come later.
#pragma once

#include <filesystem>

#include "emulator/cli/findings/check_options.h"

namespace rocemu::cli {

// Throws Failure when it can't be written.
void remember_checks(const std::filesystem::path& state_dir, const CheckOptions& options);

// `options`, or where these want no checks those that the NIC was started with.
CheckOptions or_those_of_nic(CheckOptions options, const std::filesystem::path& state_dir);

}  // namespace rocemu::cli
