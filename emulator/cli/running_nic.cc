#include "emulator/cli/running_nic.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/state_dir.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

RunningNic at_socket(const fs::path& socket) {
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
  return RunningNic{state_dir, state_dir.filename()};
}

}  // namespace

fs::path RunningNic::socket() const { return state_dir / ROCEMU_SOCKET_NAME; }

RunningNic find_running_nic(const Options& options) {
  if (!options.socket.empty()) return at_socket(options.socket);
  const char* outer = std::getenv(ROCEMU_ENV_DIR);
  if (options.name.empty() && outer != nullptr && *outer != '\0') {
    return at_socket(fs::path(outer) / ROCEMU_SOCKET_NAME);
  }
  const std::string name = options.name_or_default();
  const fs::path base = own_base();
  const RunningNic nic{base / name, name};
  switch (liveness(base, name)) {
    case Liveness::kAbsent:
      throw Failure("no NIC named '" + name + "' is up; start one with: rocemu up --name " + name,
                    kWrongState);
    case Liveness::kDead:
      throw Failure("the NIC named '" + name + "' ended by itself, see " +
                        (nic.state_dir / "log").native() +
                        "; start it again with: rocemu up --name " + name,
                    kWrongState);
    case Liveness::kAlive:
      break;
  }
  return nic;
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
