// `rocemu exec` and `rocemu env`: a program, or all programs of a shell, over a NIC that is up.
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/findings/checked_program.h"
#include "emulator/cli/findings/nic_checks.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/program.h"
#include "emulator/cli/process/signals.h"
#include "emulator/cli/running_nic.h"
#include "verbs_shim/abi/check_files.h"

namespace rocemu::cli {
namespace {

// A program that is checked has findings to be read when it has ended; so this process stays.
int run_checked(const Options& options, const CheckOptions& checks, const RunningNic& nic,
                const Installation& installation, Environment environment) {
  SignalWatch signals;
  const CheckedProgram checked_program(checks);
  checked_program.add_variables(environment, installation);
  heed_obstacle(options.program, environment);
  const pid_t program = spawn_program(options.program, environment, signals);
  for (;;) {
    const SignalEvent event = signals.wait();
    if (event.number == SIGCHLD) {
      const std::optional<int> code = exit_code_if_ended(program);
      if (!code) continue;
      if (or_those_of_nic({}, nic.state_dir).wanted())
        checked_program.add_findings_to(nic.state_dir);
      return checked_program.finish(*code);
    } else if (event.is_ours_alone) {
      ::kill(program, event.number);
    }
  }
}

void print(const Environment& environment, std::string_view name) {
  std::cout << "export " << name << '=' << shell_quoted(get(environment, name)) << '\n';
}

}  // namespace

int exec(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const RunningNic nic = find_running_nic(options);
  ControlClient(nic.socket());  // answers, and speaks this ABI
  const CheckOptions checks = or_those_of_nic(options.check, nic.state_dir);
  Environment environment =
      for_program(current_environment(), installation, nic.state_dir, options.share_memory);
  if (checks.wanted()) return run_checked(options, checks, nic, installation, environment);
  heed_obstacle(options.program, environment);
  exec_program(options.program, environment);
}

int env(const Options& options) {
  const Installation installation = find_installation(own_executable(), ROCEMU_INSTALL_LIBDIR);
  const RunningNic nic = find_running_nic(options);
  Environment environment = current_environment();
  for (const auto& [name, value] : nic_variables(environment, installation, nic.state_dir)) {
    set(environment, name, value);
    print(environment, name);
  }
  const CheckOptions checks = or_those_of_nic({}, nic.state_dir);
  if (!checks.wanted()) return kSuccess;
  // Findings stay in the state directory until the NIC is down.
  add_check_variables(environment, installation, checks, nic.state_dir);
  for (const char* name : {ROCEMU_ENV_CHECK, ROCEMU_ENV_CHECK_DIR, ROCEMU_ENV_CHECK_SUPPRESSIONS,
                           "LD_PRELOAD", "ASAN_OPTIONS"}) {
    if (!get(environment, name).empty()) print(environment, name);
  }
  return kSuccess;
}

}  // namespace rocemu::cli
