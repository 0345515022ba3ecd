#include "emulator/daemon/move_watchdog.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "base/unique_fd.h"

namespace rocemu::daemon {
namespace {

// A program that does nothing until it is killed.
class WatchedProgram {
 public:
  WatchedProgram() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
    REQUIRE(pid_ > 0);
    process_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    REQUIRE(process_);
  }
  ~WatchedProgram() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  int process() const { return process_.get(); }
  bool ends_within(std::chrono::milliseconds time) const {
    pollfd poll{process_.get(), POLLIN, 0};
    return ::poll(&poll, 1, static_cast<int>(time.count())) == 1;
  }

 private:
  pid_t pid_;
  UniqueFd process_;
};

}  // namespace

TEST_CASE("a program in whose memory one call does not end is killed") {
  const WatchedProgram program;
  const MoveWatchdog watchdog;
  const dma::MoveUnderWay stuck(program.pid(), program.process());
  CHECK(program.ends_within(std::chrono::seconds(60)));
}

TEST_CASE("a program in whose memory one call follows the other lives") {
  const WatchedProgram program;
  const MoveWatchdog watchdog;
  const auto until = std::chrono::steady_clock::now() + MoveWatchdog::kAnything * 2;
  while (std::chrono::steady_clock::now() < until) {
    const dma::MoveUnderWay call(program.pid(), program.process());
    if (program.ends_within(std::chrono::milliseconds(20))) break;
  }
  CHECK_FALSE(program.ends_within(std::chrono::milliseconds(0)));
}

}  // namespace rocemu::daemon
