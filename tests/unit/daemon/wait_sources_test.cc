#include "emulator/daemon/wait_sources.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/unique_fd.h"

namespace rocemu::daemon {
namespace {

// One that anybody may have.
UniqueFd open_userfaultfd() {
  UniqueFd fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  uffdio_api api{};
  api.api = UFFD_API;
  if (fd && ::ioctl(fd.get(), UFFDIO_API, &api) != 0) fd = {};
  return fd;
}

pid_t idle_child() {
  const pid_t pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  REQUIRE(pid > 0);
  return pid;
}

}  // namespace

TEST_CASE("who holds a program's userfaultfd is found and ended, and nobody else") {
  const pid_t stranger = idle_child();
  UniqueFd userfaultfd = open_userfaultfd();
  if (!userfaultfd) {
    WARN("skipped: no userfaultfd(2) here");
    ::kill(stranger, SIGKILL);
    ::waitpid(stranger, nullptr, 0);
    return;
  }
  const pid_t heir = idle_child();
  const WaitSources sources = userfaultfds_of(heir);
  userfaultfd = {};
  CHECK(sources.userfaultfds.size() == 1);
  CHECK(userfaultfds_of(stranger).userfaultfds.empty());

  const Accomplices own = accomplices_of(::getpid());
  CHECK(own.user == ::getuid());
  CHECK(end(sources, {own.user + 1, own.session}) == 0);
  if (own.user == 0) CHECK(end(sources, {0, own.session + 1}) == 0);
  CHECK(end(sources, own) == 1);
  int status = 0;
  CHECK(::waitpid(heir, &status, 0) == heir);
  CHECK(WIFSIGNALED(status));
  CHECK(::waitpid(stranger, nullptr, WNOHANG) == 0);
  CHECK(end(sources, own) == 0);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

TEST_CASE("a thread that runs waits in no function of the kernel") {
  const std::string function = waits_in(::gettid());
  CHECK((function.empty() || function == "0"));
}

}  // namespace rocemu::daemon
