#include "emulator/cli/process/program.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "emulator/cli/process/exit_codes.h"

namespace rocemu::cli {
namespace {

pid_t child_that(void (*ends)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ends();
    ::_exit(0);
  }
  return child;
}

void wait_for_end(pid_t child) {
  siginfo_t end;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) == 0);
}

TEST_CASE("a program that has ended has an exit code, and is not reaped for it") {
  const pid_t child = child_that([] { ::_exit(7); });
  wait_for_end(child);
  CHECK(exit_code_if_ended(child) == 7);
  CHECK(exit_code_if_ended(child) == 7);
  int status = 0;
  CHECK(::waitpid(child, &status, WNOHANG) == child);
  CHECK(!exit_code_if_ended(child));
}

TEST_CASE("the exit code of a program that a signal ended is 128 and the signal's number") {
  const pid_t child = child_that([] {
    for (;;) ::pause();
  });
  CHECK(!exit_code_if_ended(child));
  ::kill(child, SIGKILL);
  wait_for_end(child);
  CHECK(exit_code_if_ended(child) == kSignalBase + SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace rocemu::cli
