// `rocemu status` and `rocemu metrics`: a NIC that is up, as rocemud describes it.
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/status_view.h"

namespace rocemu::cli {

int status(const Options& options) {
  const RunningNic nic = find_running_nic(options);
  Json shown = {{"name", nic.name}, {"state_dir", nic.state_dir.native()}};
  shown.update(ControlClient(nic.socket()).status());
  if (options.json) {
    std::cout << shown.dump(2) << '\n';
  } else {
    std::cout << status_text(shown);
  }
  return kSuccess;
}

int metrics(const Options& options) {
  std::cout << ControlClient(find_running_nic(options).socket()).metrics();
  return kSuccess;
}

}  // namespace rocemu::cli
