#include "emulator/cli/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReadyTimeout{30};
constexpr int kStopTimeout_ms = 5000;
constexpr int kDaemonUsage = 2;  // rocemud's exit code for bad options or a bad configuration

int remaining_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

struct ChildSetup {
  int log_fd;
  int ready_fd;
  int lock_fd;
  Lifetime lifetime;
  pid_t parent;
};

// Runs between fork and exec.
void become_daemon(const ChildSetup& setup, char* const* command, char* const* environment) {
  if (setup.lifetime == Lifetime::kOwn) {
    ::setsid();
  } else {
    // Linux shares a core among sessions first (sched(7), autogroups), and where one has spinning
    // and napping threads on each core it was seen to give others nothing for a minute. So the NIC
    // is of its programs' session; a terminal's signals are for their group alone.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != setup.parent) ::_exit(kFailure);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const int null_fd = ::open("/dev/null", O_RDWR);
  ::dup2(null_fd, STDIN_FILENO);
  ::dup2(setup.log_fd, STDOUT_FILENO);
  ::dup2(setup.log_fd, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::fcntl(setup.ready_fd, F_SETFD, 0);
  ::fcntl(setup.lock_fd, F_SETFD, 0);
  ::execve(command[0], command, environment);
  ::dprintf(STDERR_FILENO, "cannot run %s: %s\n", command[0], std::strerror(errno));
  ::_exit(kFailure);
}

}  // namespace

std::vector<std::string> daemon_command(const std::filesystem::path& executable,
                                        const std::filesystem::path& state_dir,
                                        const NicOptions& options, int ready_fd,
                                        Lifetime lifetime) {
  std::vector<std::string> command = {executable.native(), "--dir", state_dir.native(),
                                      "--ready-fd", std::to_string(ready_fd)};
  const auto add = [&](const char* option, const std::string& value) {
    command.emplace_back(option);
    command.push_back(value);
  };
  if (options.devices) add("--devices", std::to_string(*options.devices));
  for (const std::string& port : options.ports) add("--port", port);
  if (!options.pcap.empty()) add("--pcap", options.pcap.native());
  if (!options.pcap_limit_mb.empty()) add("--pcap-limit-mb", options.pcap_limit_mb);
  if (!options.trace.empty()) add("--trace", options.trace.native());
  if (!options.trace_on_error.empty()) add("--trace-on-error", options.trace_on_error.native());
  if (!options.trace_last.empty()) add("--trace-last", options.trace_last);
  if (!options.trace_filter.empty()) add("--trace-filter", options.trace_filter);
  if (!options.trace_limit_mb.empty()) add("--trace-limit-mb", options.trace_limit_mb);
  if (!options.network.empty()) add("--network", options.network.native());
  if (!options.recovery.empty()) add("--recovery", options.recovery);
  if (options.shake) command.push_back("--shake=" + *options.shake);
  for (const std::string& text : options.impair) add("--impair", text);
  for (const std::string& text : options.faults) add("--fault", text);
  for (const std::string& text : options.congestion) add("--congestion", text);
  if (!options.metrics.empty()) add("--metrics", options.metrics);
  if (!options.config.empty()) add("--config", options.config.native());
  if (options.check) command.emplace_back("--check");
  if (!options.log_level.empty()) add("--log-level", options.log_level);
  if (lifetime == Lifetime::kOfParent) command.emplace_back("--die-with-parent");
  return command;
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
  }
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

DaemonProcess::DaemonProcess(const std::filesystem::path& executable, const StateDir& state_dir,
                             const NicOptions& options, const Environment& environment,
                             Lifetime lifetime)
    : state_dir_(state_dir.path()) {
  const std::filesystem::path log_path = state_dir_ / "log";
  const UniqueFd log(
      ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) throw Failure("cannot make " + log_path.native() + ": " + std::strerror(errno));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  ready_ = UniqueFd(ends[0]);
  const UniqueFd ready_write(ends[1]);

  const std::vector<std::string> command =
      daemon_command(executable, state_dir_, options, ready_write.get(), lifetime);
  const std::vector<char*> arguments = as_exec_array(command);
  const std::vector<char*> variables = as_exec_array(environment);
  const ChildSetup setup{log.get(), ready_write.get(), state_dir.lock_fd(), lifetime, ::getpid()};
  pid_ = ::fork();
  if (pid_ < 0) throw Failure(std::string("cannot fork: ") + std::strerror(errno));
  if (pid_ == 0) become_daemon(setup, arguments.data(), variables.data());
  running_ = true;
  std::ofstream(state_dir_ / "pid") << pid_ << '\n';
}

DaemonProcess::~DaemonProcess() { stop(); }

void DaemonProcess::wait_ready(SignalWatch& signals) {
  const Clock::time_point deadline = Clock::now() + kReadyTimeout;
  for (;;) {
    pollfd watched[] = {{ready_.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    const int count = ::poll(watched, 2, remaining_ms(deadline));
    if (count < 0 && errno != EINTR) {
      throw Failure(std::string("cannot wait: ") + std::strerror(errno));
    }
    if (count == 0) {
      throw Failure(
          "the NIC was not ready within " + std::to_string(kReadyTimeout.count()) +
          " s; the machine may be overloaded. Last line of its log: " + last_log_line(state_dir_));
    }
    if ((watched[1].revents & POLLIN) != 0) {
      const SignalEvent event = signals.wait();
      if (event.number != SIGCHLD) throw Interrupted{event.number};
    }
    if (watched[0].revents == 0) continue;

    char text[16];
    const ssize_t bytes = ::read(ready_.get(), text, sizeof(text));
    if (bytes > 0) return;
    if (bytes < 0 && errno == EINTR) continue;
    if (!wait_for_end(kStopTimeout_ms)) {
      throw Failure("rocemud gave up its ready pipe without a word; see " +
                    (state_dir_ / "log").native());
    }
    const std::string reason = last_log_line(state_dir_);
    throw Failure(
        "the NIC did not start: " + (reason.empty() ? "rocemud: " + describe_end(status_) : reason),
        WIFEXITED(status_) && WEXITSTATUS(status_) == kDaemonUsage ? kUsage : kFailure);
  }
}

std::optional<int> DaemonProcess::ended() {
  if (!running_) return std::nullopt;
  const pid_t reaped = ::waitpid(pid_, &status_, WNOHANG);
  if (reaped != pid_) return std::nullopt;
  running_ = false;
  return status_;
}

bool DaemonProcess::wait_for_end(int timeout_ms) {
  if (!running_) return true;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd watched = {process.get(), POLLIN, 0};
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!ended()) {
    const int left_ms = remaining_ms(deadline);
    if (left_ms == 0) return false;
    constexpr int kWithoutPidfd_ms = 20;  // a sandbox may forbid pidfd_open
    ::poll(&watched, 1, process ? left_ms : std::min(left_ms, kWithoutPidfd_ms));
  }
  return true;
}

void DaemonProcess::stop() {
  if (!running_) return;
  ::kill(pid_, SIGTERM);
  if (wait_for_end(kStopTimeout_ms)) return;
  ::kill(pid_, SIGKILL);
  wait_for_end(kStopTimeout_ms);
}

}  // namespace rocemu::cli
