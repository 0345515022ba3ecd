// Starting, waiting for and ending rocemud.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cli/options.h"
#include "emulator/cli/process/process_environment.h"
#include "emulator/cli/process/signals.h"
#include "emulator/cli/state_dir.h"

namespace rocemu::cli {

enum class Lifetime {
  kOfParent,  // ends with this process, however that ends
  kOwn,
};

std::vector<std::string> daemon_command(const std::filesystem::path& executable,
                                        const std::filesystem::path& state_dir,
                                        const NicOptions& options, int ready_fd, Lifetime lifetime);

// Says "exit code 3" or "signal 9 (Killed)" of a wait(2) status.
std::string describe_end(int wait_status);

class DaemonProcess {
 public:
  // Starts the daemon in a session of its own, or, when its lifetime is this process's, in a
  // process group of its own, its output in STATE_DIR/log, the state directory's lock inherited. It
  // is killed in the destructor unless it ended or was released.
  DaemonProcess(const std::filesystem::path& executable, const StateDir& state_dir,
                const NicOptions& options, const Environment& environment, Lifetime lifetime);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Returns when programs can open devices. Throws Failure with the daemon's reason when it ends
  // before that or takes too long, Interrupted when a signal to end arrives.
  void wait_ready(SignalWatch& signals);

  pid_t pid() const { return pid_; }

  // Reaps the daemon if it has ended; its wait(2) status the first time that is seen.
  std::optional<int> ended();

  // SIGTERM, a few seconds, SIGKILL. Does nothing when the daemon has ended.
  void stop();

  // The daemon goes on without this process.
  void release() { running_ = false; }

 private:
  bool wait_for_end(int timeout_ms);

  std::filesystem::path state_dir_;
  UniqueFd ready_;
  pid_t pid_ = -1;
  bool running_ = false;
  int status_ = 0;
};

}  // namespace rocemu::cli
