#include "emulator/cli/target.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "emulator/cli/exit_codes.h"
#include "emulator/cli/state_dir.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

Target at_socket(const fs::path& socket) {
  std::error_code error;
  if (socket.filename() != ROCEMU_SOCKET_NAME) {
    throw Failure(
        "'" + socket.native() + "' is no NIC's socket: that is a file named " + ROCEMU_SOCKET_NAME,
        kUsage);
  }
  if (!fs::is_socket(socket, error)) {
    throw Failure("no NIC is up behind " + socket.native() + "; start one with: rocemu up",
                  kWrongState);
  }
  const fs::path state_dir = fs::absolute(socket).lexically_normal().parent_path();
  return Target{state_dir, state_dir.filename()};
}

}  // namespace

fs::path Target::socket() const { return state_dir / ROCEMU_SOCKET_NAME; }

std::string not_up_message(const std::string& name) {
  return "no NIC named '" + name + "' is up; start one with: rocemu up --name " + name;
}

std::string ended_message(const std::string& name, const fs::path& state_dir) {
  return "the NIC named '" + name + "' ended by itself, see " + (state_dir / "log").native() +
         "; start it again with: rocemu up --name " + name;
}

Target find_target(const Options& options) {
  if (!options.socket.empty()) return at_socket(options.socket);
  const char* outer = std::getenv(ROCEMU_ENV_DIR);
  if (options.name.empty() && outer != nullptr && *outer != '\0') {
    return at_socket(fs::path(outer) / ROCEMU_SOCKET_NAME);
  }
  const std::string name = options.name_or_default();
  const fs::path base = own_base();
  const Target target{base / name, name};
  switch (liveness(base, name)) {
    case Liveness::kAbsent:
      throw Failure(not_up_message(name), kWrongState);
    case Liveness::kDead:
      throw Failure(ended_message(name, target.state_dir), kWrongState);
    case Liveness::kAlive:
      break;
  }
  return target;
}

std::vector<std::string> device_names(const fs::path& state_dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(state_dir / ROCEMU_SYSFS_NAME / "class" / "infiniband", error),
       end;
       !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::ranges::sort(names, [](const std::string& left, const std::string& right) {
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return names;
}

}  // namespace rocemu::cli
