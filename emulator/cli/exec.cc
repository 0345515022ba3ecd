// `rocemu exec` and `rocemu env`: a program, or all programs of a shell, over a NIC that is up.
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/program.h"
#include "emulator/cli/running_nic.h"

namespace rocemu::cli {

int exec(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const RunningNic nic = find_running_nic(options);
  ControlClient(nic.socket());  // answers, and speaks this ABI
  exec_program(options.program, for_program(current_environment(), installation, nic.state_dir,
                                            options.share_memory));
}

int env(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const RunningNic nic = find_running_nic(options);
  for (const auto& [name, value] :
       nic_variables(current_environment(), installation, nic.state_dir)) {
    std::cout << "export " << name << '=' << shell_quoted(value) << '\n';
  }
  return kSuccess;
}

}  // namespace rocemu::cli
