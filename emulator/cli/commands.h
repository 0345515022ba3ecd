// What each command does. Each returns the exit code and throws Failure for one line on stderr.
#pragma once

#include "emulator/cli/options.h"

namespace rocemu::cli {

int run(const Options& options);
int up(const Options& options);
int exec(const Options& options);
int status(const Options& options);
int down(const Options& options);
int env(const Options& options);
int link_set(const Options& options);
int link_show(const Options& options);
int version(const Options& options);

// One line on stderr, "rocemu: " in front.
void complain(const std::string& message);

// The options with file names made absolute, and their files checked as far as can be here.
NicOptions checked(NicOptions options);

}  // namespace rocemu::cli
