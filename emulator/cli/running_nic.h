// The NIC that a command is about, which is up already.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/cli/options.h"

namespace rocemu::cli {

struct RunningNic {
  std::filesystem::path state_dir;
  std::string name;

  std::filesystem::path socket() const;
};

// Takes the NIC of --socket, else of --name, else of $ROCEMU_DIR, else the one of the default name.
// Throws Failure (wrong state) when there is no such NIC.
RunningNic find_running_nic(const Options& options);

// Returns the names in STATE_DIR/sys/class/infiniband, rocemu2 before rocemu10.
std::vector<std::string> device_names(const std::filesystem::path& state_dir);

}  // namespace rocemu::cli
