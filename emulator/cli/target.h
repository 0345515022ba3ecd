// Which NIC that is up a command means, and what is said when it is not up.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "emulator/cli/options.h"

namespace rocemu::cli {

struct Target {
  std::filesystem::path state_dir;
  std::string name;

  std::filesystem::path socket() const;
};

// --socket, else --name, else $ROCEMU_DIR, else the default name. Throws Failure (wrong state) when
// there is no such NIC.
Target find_target(const Options& options);

// What to say about a NIC of this user that is not up.
std::string not_up_message(const std::string& name);
std::string ended_message(const std::string& name, const std::filesystem::path& state_dir);

// The names in STATE_DIR/sys/class/infiniband, rocemu2 before rocemu10.
std::vector<std::string> device_names(const std::filesystem::path& state_dir);

}  // namespace rocemu::cli
