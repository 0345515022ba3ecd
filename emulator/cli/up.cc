// `rocemu up`: a NIC that outlives the command that starts it.
#include <iostream>
#include <nlohmann/json.hpp>

#include "emulator/cli/commands.h"
#include "emulator/cli/daemon_process.h"
#include "emulator/cli/findings/nic_checks.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/state_dir.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

void print_up(const Options& options, const StateDir& state_dir, pid_t pid) {
  const std::vector<std::string> devices = device_names(state_dir.path());
  const std::string name = options.name_or_default();
  if (options.json) {
    const nlohmann::ordered_json report = {{"name", name},
                                           {"state_dir", state_dir.path().native()},
                                           {"pid", pid},
                                           {"devices", devices}};
    std::cout << report.dump() << '\n';
    return;
  }
  std::cout << "NIC '" << name << "' is up:";
  for (const std::string& device : devices) std::cout << ' ' << device;
  std::cout << '\n';
}

}  // namespace

int up(const Options& options) {
  const std::string name = options.name_or_default();
  refuse_private(name);
  const NicOptions nic_options = checked(options.nic);
  const fs::path executable = own_executable();
  find_installation(executable, ROCEMU_INSTALL_LIBDIR);
  const fs::path daemon = find_daemon(executable);

  SignalWatch signals;
  const fs::path base = own_base();
  remove_stale_private(base);
  StateDir state_dir = StateDir::create(base, name);
  try {
    DaemonProcess nic(daemon, state_dir, nic_options, for_daemon(current_environment()),
                      Lifetime::kOwn);
    nic.wait_ready(signals);
    remember_checks(state_dir.path(), options.check);
    print_up(options, state_dir, nic.pid());
    require_printed();
    nic.release();
  } catch (...) {
    state_dir.remove();
    throw;
  }
  return kSuccess;
}

}  // namespace rocemu::cli
