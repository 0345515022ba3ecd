#include "emulator/cli/process/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {

namespace {

// Of the kernel's signals: an alarm, and a hang-up where this is the leader of its session, which
// the kernel tells alone.
bool goes_to_one(int number) {
  return number == SIGALRM || (number == SIGHUP && ::getsid(0) == ::getpid());
}

}  // namespace

SignalWatch::SignalWatch() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM}) {
    ::sigaddset(&watched, number);
  }
  // An inherited SIG_IGN for SIGCHLD would make the kernel reap children by itself.
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &plain, &found_child_action_);
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignored, &found_pipe_action_);
  ::sigprocmask(SIG_BLOCK, &watched, &found_mask_);
  fd_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC));
  if (!fd_) throw Failure(std::string("cannot watch signals: ") + std::strerror(errno));
}

SignalWatch::~SignalWatch() { restore_in_child(); }

SignalEvent SignalWatch::wait() {
  signalfd_siginfo info = {};
  ssize_t bytes = -1;
  do {
    bytes = ::read(fd_.get(), &info, sizeof(info));
  } while (bytes < 0 && errno == EINTR);
  if (bytes != sizeof(info)) throw Failure(std::string("cannot wait: ") + std::strerror(errno));
  const auto number = static_cast<int>(info.ssi_signo);
  return SignalEvent{number, info.ssi_code != SI_KERNEL || goes_to_one(number)};
}

void SignalWatch::restore_in_child() const {
  ::sigaction(SIGCHLD, &found_child_action_, nullptr);
  ::sigaction(SIGPIPE, &found_pipe_action_, nullptr);
  ::sigprocmask(SIG_SETMASK, &found_mask_, nullptr);
}

}  // namespace rocemu::cli
