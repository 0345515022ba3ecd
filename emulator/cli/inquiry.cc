// `rocemu exec`, `status`, `env`, `version`: commands about a NIC that is there already.
#include <iostream>
#include <nlohmann/json.hpp>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/exit_codes.h"
#include "emulator/cli/program.h"
#include "emulator/cli/status_view.h"
#include "emulator/cli/target.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {

int exec(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const Target target = find_target(options);
  ControlClient(target.socket());  // answers, and speaks this ABI
  exec_program(options.program, for_program(current_environment(), installation, target.state_dir,
                                            options.share_memory));
}

int status(const Options& options) {
  const Target target = find_target(options);
  const nlohmann::ordered_json answer = nlohmann::ordered_json::parse(
      ControlClient(target.socket()).status(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    throw Failure("the NIC behind " + target.socket().native() +
                  " answered with something that is no JSON object; update rocemu and rocemud "
                  "together");
  }
  nlohmann::ordered_json shown = {{"name", target.name}, {"state_dir", target.state_dir.native()}};
  shown.update(answer);
  if (options.json) {
    std::cout << shown.dump(2) << '\n';
  } else {
    std::cout << status_text(shown);
  }
  return kSuccess;
}

int env(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const Target target = find_target(options);
  for (const auto& [name, value] :
       nic_variables(current_environment(), installation, target.state_dir)) {
    std::cout << "export " << name << '=' << shell_quoted(value) << '\n';
  }
  return kSuccess;
}

int version(const Options& options) {
  if (options.json) {
    const nlohmann::ordered_json report = {{"version", ROCEMU_VERSION},
                                           {"abi_version", static_cast<int>(ROCEMU_ABI_VERSION)}};
    std::cout << report.dump() << '\n';
  } else {
    std::cout << version_text() << '\n';
  }
  return kSuccess;
}

}  // namespace rocemu::cli
