#include "emulator/cli/process/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

Failure cannot_run(const std::string& program, int error) {
  if (error == ENOENT) {
    return Failure("cannot run '" + program + "': not found; check its name and PATH", kNotFound);
  }
  return Failure("cannot run '" + program + "': " + std::strerror(error), kNotExecutable);
}

void show_output_to(int output) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(output, fd);
}

}  // namespace

std::optional<int> exit_code_if_ended(pid_t child) {
  siginfo_t end = {};
  if (::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      end.si_pid != child)
    return std::nullopt;
  return end.si_code == CLD_EXITED ? end.si_status : kSignalBase + end.si_status;
}

void bury_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void exec_program(const std::vector<std::string>& program, const Environment& environment) {
  ::execvpe(program[0].c_str(), as_exec_array(program).data(), as_exec_array(environment).data());
  throw cannot_run(program[0], errno);
}

pid_t spawn_program(const std::vector<std::string>& program, const Environment& environment,
                    const SignalWatch& signals, int output) {
  const std::vector<char*> arguments = as_exec_array(program);
  const std::vector<char*> variables = as_exec_array(environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const UniqueFd report(ends[0]);
  UniqueFd report_write(ends[1]);

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw Failure(std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(kNotExecutable);
    signals.restore_in_child();
    if (output >= 0) show_output_to(output);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    const ssize_t written = ::write(report_write.get(), &error, sizeof(error));
    ::_exit(written == sizeof(error) ? kNotFound : kNotExecutable);
  }

  // The exec closes the pipe; only a failed one writes to it.
  report_write.reset();
  int error = 0;
  ssize_t bytes = -1;
  do {
    bytes = ::read(report.get(), &error, sizeof(error));
  } while (bytes < 0 && errno == EINTR);
  if (bytes == 0) return child;
  ::waitpid(child, nullptr, 0);
  throw cannot_run(program[0], bytes == sizeof(error) ? error : EIO);
}

}  // namespace rocemu::cli
