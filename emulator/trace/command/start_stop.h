// `rocemu trace start` and `rocemu trace stop`. Both return the exit code and throw cli::Failure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "emulator/cli/options.h"

namespace rocemu::trace {

struct StartOptions {
  cli::Options nic;  // which one
  std::string filter;
  std::filesystem::path file;
  uint64_t max_bytes = 0;  // 0: the NIC's own bound
};

// `words` after "start"; with `stop`, those after "stop", which has no file and no filter.
StartOptions parse_start(std::span<const std::string> words, bool stop = false);

int start(std::span<const std::string> words);
int stop(std::span<const std::string> words);

}  // namespace rocemu::trace
