// `rocemu run`: this process is the parent of both the daemon and the program. The daemon has a
// process group of its own and asks the kernel to end it when this process dies; the program shares
// this process's group and terminal.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "emulator/cli/commands.h"
#include "emulator/cli/daemon_process.h"
#include "emulator/cli/findings/checked_program.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/process/program.h"
#include "emulator/cli/server_and_client.h"
#include "verbs_shim/abi/control.h"

namespace rocemu::cli {
namespace {

// Removes the state directory at the end of the run, whatever way that is left.
class PrivateStateDir {
 public:
  PrivateStateDir(const std::filesystem::path& base, bool keep_log)
      : dir_(StateDir::create(base, private_name())), keep_log_(keep_log) {}
  ~PrivateStateDir() {
    if (keep_log_) keep_log();
    try {
      dir_.remove();
    } catch (const Failure& failure) {
      complain(failure.what());
    }
  }
  PrivateStateDir(const PrivateStateDir&) = delete;
  PrivateStateDir& operator=(const PrivateStateDir&) = delete;

  const StateDir& get() const { return dir_; }

 private:
  void keep_log() const {
    const std::string name = "rocemu-" + std::to_string(::getpid()) + ".log";
    std::error_code error;
    std::filesystem::copy_file(dir_.path() / "log", name,
                               std::filesystem::copy_options::overwrite_existing, error);
    complain(error ? "cannot keep the NIC's log as " + name + ": " + error.message()
                   : "the NIC's log is in " + name);
  }

  StateDir dir_;
  bool keep_log_;
};

// At the end of the run, whatever way that is left.
struct Burial {
  ~Burial() { bury_children(); }
};

void report_lost_nic(const DaemonProcess& nic, int wait_status, const StateDir& state_dir) {
  std::string message = "the NIC (rocemud, process " + std::to_string(nic.pid()) +
                        ") ended while the program runs, by " + describe_end(wait_status) +
                        "; its devices fail from now on; --keep-log keeps its log";
  const std::string last = last_log_line(state_dir.path());
  if (!last.empty()) message += ", which ends: " + last;
  complain(message);
}

// Says how the NIC was shaken, so that what has failed can be had again.
void report_shake(int exit_code, const StateDir& state_dir) {
  std::string text;
  std::ifstream file(state_dir.path() / ROCEMU_SHAKE_NAME);
  if (exit_code == kSuccess || !std::getline(file, text)) return;
  complain("the NIC was shaken; to have the same again: --shake=" + text);
}

// A recording that has ended too early is missed when it is wanted, long after. The log says it.
void report_recordings(const StateDir& state_dir) {
  std::ifstream log(state_dir.path() / "log");
  for (std::string line; std::getline(log, line);) {
    if (!line.ends_with("; recording has ended") && !line.ends_with("; it is not whole")) continue;
    const size_t begin = std::min(line.find("capture file "), line.find("trace: "));
    if (begin != std::string::npos) complain(line.substr(begin));
  }
}

int end_of_run(int exit_code, const CheckedProgram& checks, DaemonProcess& nic,
               const StateDir& state_dir) {
  const int code = checks.finish(exit_code);
  report_shake(code, state_dir);
  nic.stop();
  report_recordings(state_dir);
  return code;
}

int wait_for_program(pid_t program, DaemonProcess& nic, const StateDir& state_dir,
                     SignalWatch& signals) {
  for (;;) {
    const SignalEvent event = signals.wait();
    if (event.number == SIGCHLD) {
      if (const std::optional<int> code = exit_code_if_ended(program)) return *code;
      if (const std::optional<int> end = nic.ended()) report_lost_nic(nic, *end, state_dir);
    } else if (event.is_ours_alone) {
      ::kill(program, event.number);
    }
  }
}

}  // namespace

int run(const Options& options) {
  const NicOptions nic_options = checked(options.nic);
  const std::filesystem::path executable = own_executable();
  const Installation installation = find_installation(executable, ROCEMU_INSTALL_LIBDIR);
  const std::filesystem::path daemon = find_daemon(executable);
  const Environment found = current_environment();

  SignalWatch signals;
  const std::filesystem::path base = own_base();
  remove_stale_private(base);
  const PrivateStateDir state_dir(base, options.keep_log);
  const CheckedProgram checked_program(options.check);
  const Burial after_the_nic;
  DaemonProcess nic(daemon, state_dir.get(), nic_options, for_daemon(found), Lifetime::kOfParent);
  nic.wait_ready(signals);
  Environment environment =
      for_program(found, installation, state_dir.get().path(), options.share_memory);
  checked_program.add_variables(environment, installation);
  heed_obstacle(options.program, environment);
  if (!options.server.empty()) {
    const auto look_at_nic = [&] {
      if (const std::optional<int> end = nic.ended()) report_lost_nic(nic, *end, state_dir.get());
    };
    const int exit_code =
        run_server_and_client({options.server, options.program}, environment,
                              state_dir.get().path() / ROCEMU_SOCKET_NAME, signals, look_at_nic);
    return end_of_run(exit_code, checked_program, nic, state_dir.get());
  }
  const pid_t program = spawn_program(options.program, environment, signals);
  const int exit_code = wait_for_program(program, nic, state_dir.get(), signals);
  return end_of_run(exit_code, checked_program, nic, state_dir.get());
}

}  // namespace rocemu::cli
