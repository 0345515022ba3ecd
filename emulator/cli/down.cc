// `rocemu down`: ends a NIC that is up.
#include <signal.h>
#include <time.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/process_tree.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/state_dir.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kStepTimeout_ms = 5000;  // for each of: asking, SIGTERM, SIGKILL

bool wait_until_gone(const fs::path& base, const std::string& name) {
  constexpr int kStep_ms = 10;
  for (int waited_ms = 0; waited_ms <= kStepTimeout_ms; waited_ms += kStep_ms) {
    if (remove_if_dead(base, name)) return true;
    const timespec step = {0, kStep_ms * 1'000'000};
    ::nanosleep(&step, nullptr);
  }
  return false;
}

// The lock is held, so the daemon that wrote the file lives; but in another PID namespace its
// number is another process's.
bool send_signal(const fs::path& state_dir, int number) {
  pid_t pid = 0;
  std::ifstream(state_dir / "pid") >> pid;
  if (pid <= 1 || !in_own_pid_namespace(pid)) return false;
  std::string command;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/cmdline"), command, '\n');
  const bool is_of_nic = command.find(state_dir.native() + '\0') != std::string::npos;
  return is_of_nic && ::kill(pid, number) == 0;
}

// As in find_running_nic(), but for a NIC that has not been started by `rocemu up` of this user:
// one of `rocemu run` ends with its program, and others are not this command's to end.
std::string name_of(const Options& options, const fs::path& base) {
  const char* const outer = std::getenv(ROCEMU_ENV_DIR);
  if (!options.name.empty() || outer == nullptr || *outer == '\0') return options.name_or_default();
  fs::path dir = fs::absolute(outer).lexically_normal();
  if (!dir.has_filename()) dir = dir.parent_path();
  const std::string name = dir.filename();
  if (dir.parent_path() != base || !valid_name(name))
    throw Failure("the NIC of $" ROCEMU_ENV_DIR ", " + dir.native() +
                      ", is not one that this user's rocemu up has started; --name names one",
                  kWrongState);
  return name.starts_with(kPrivatePrefix) ? options.name_or_default() : name;
}

bool end_nic(const fs::path& base, const std::string& name) {
  const RunningNic nic{base / name, name};
  try {
    ControlClient(nic.socket()).shutdown();
    if (wait_until_gone(base, name)) return true;
  } catch (const Failure&) {
    // It does not listen any more: the signals below are for this case.
  }
  for (const int number : {SIGTERM, SIGKILL}) {
    if (liveness(base, name) == Liveness::kAlive) send_signal(nic.state_dir, number);
    if (wait_until_gone(base, name)) return true;
  }
  return false;
}

}  // namespace

int down(const Options& options) {
  const fs::path base = own_base();
  const std::string name = name_of(options, base);
  refuse_private(name);
  switch (liveness(base, name)) {
    case Liveness::kAbsent:
      throw Failure("no NIC named '" + name + "' is up", kWrongState);
    case Liveness::kDead:
      remove_if_dead(base, name);
      std::cout << "NIC '" << name << "' had ended by itself; what it left is removed\n";
      return kSuccess;
    case Liveness::kAlive:
      break;
  }
  if (!end_nic(base, name)) {
    throw Failure("the NIC named '" + name + "' does not end; see " +
                  (base / name / "log").native() + ", its process is in " +
                  (base / name / "pid").native());
  }
  std::cout << "NIC '" << name << "' is down\n";
  return kSuccess;
}

}  // namespace rocemu::cli
