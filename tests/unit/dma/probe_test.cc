// Which way into a program is found, and what is refused.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "emulator/dma/address_space.h"
#include "tests/unit/dma/child_program.h"

namespace rocemu::dma {
namespace {

using test::ChildProgram;

std::unique_ptr<AddressSpace> probe(const ChildProgram& child, int mem_fd,
                                    std::optional<Method> force = {}) {
  return AddressSpace::probe(child.pid(), mem_fd, child.base(), ChildProgram::kProbeValue, force);
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// Another thread does it (base/reaper).
bool gets_closed(int fd) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (is_open(fd) && std::chrono::steady_clock::now() < until) sched_yield();
  return !is_open(fd);
}

TEST_CASE("probe prefers process_vm and takes what it is forced to") {
  ChildProgram child(1);
  auto space = probe(child, child.mem_fd());
  REQUIRE(space);
  CHECK(space->method() == Method::process_vm);
  CHECK(space->pid() == child.pid());
  CHECK(to_string(space->method()) == "process_vm");

  space = probe(child, child.mem_fd(), Method::mem_fd);
  REQUIRE(space);
  CHECK(space->method() == Method::mem_fd);
  CHECK(to_string(space->method()) == "mem_fd");

  CHECK(probe(child, -1));
  CHECK_FALSE(probe(child, -1, Method::mem_fd));
  CHECK_FALSE(probe(child, -1, Method::local));
}

TEST_CASE("probe finds nothing when the value is another, or nothing is there") {
  ChildProgram child(1);
  const auto probe_at = [&](uint64_t address, uint64_t value) {
    return AddressSpace::probe(child.pid(), child.mem_fd(), address, value);
  };
  CHECK_FALSE(probe_at(child.base(), 1));
  CHECK_FALSE(probe_at(child.base() + test::kPageBytes, 0));
  CHECK_FALSE(probe_at(UINT64_MAX - 3, 0));
  CHECK_FALSE(probe_at(UINT64_MAX - 7, 0));
}

TEST_CASE("probe uses the descriptor when the process has no id here") {
  ChildProgram child(1);
  const auto by = [&](int mem_fd, std::optional<Method> force = {}) {
    return AddressSpace::probe(0, mem_fd, child.base(), ChildProgram::kProbeValue, force);
  };
  const auto space = by(child.mem_fd());
  REQUIRE(space);
  CHECK(space->method() == Method::mem_fd);
  CHECK_FALSE(by(-1));
  CHECK_FALSE(by(child.mem_fd(), Method::process_vm));
}

TEST_CASE("probe uses the descriptor when the process id is a stranger's") {
  ChildProgram child(1);
  ChildProgram stranger(1);
  stranger.memory()[0] = std::byte{0};
  const auto space =
      AddressSpace::probe(stranger.pid(), child.mem_fd(), child.base(), ChildProgram::kProbeValue);
  REQUIRE(space);
  CHECK(space->method() == Method::mem_fd);
}

TEST_CASE("the descriptor is closed after the address space, or when no way works") {
  ChildProgram child(1);
  const int fd = child.mem_fd();
  auto space = probe(child, fd, Method::mem_fd);
  CHECK(is_open(fd));
  space.reset();
  CHECK(gets_closed(fd));

  const int refused = child.mem_fd();
  CHECK_FALSE(probe(child, refused, Method::local));
  CHECK(gets_closed(refused));
}

TEST_CASE("a descriptor that is no mem file open for both is refused") {
  ChildProgram child(1);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK_FALSE(probe(child, ends[0], Method::mem_fd));
  CHECK_FALSE(probe(child, ends[1], Method::mem_fd));

  const auto path = "/proc/" + std::to_string(child.pid()) + "/mem";
  CHECK_FALSE(probe(child, open(path.c_str(), O_RDONLY | O_CLOEXEC), Method::mem_fd));
  CHECK_FALSE(probe(child, open("/proc/self/comm", O_RDWR | O_CLOEXEC), Method::mem_fd));
  CHECK_FALSE(probe(child, 1 << 20, Method::mem_fd));
}

TEST_CASE("a program that may not be traced is reached through its descriptor alone") {
  CHECK(test::holds_without_privilege([] {
    ChildProgram child(1, [](std::byte*) { prctl(PR_SET_DUMPABLE, 0); });
    const auto found = probe(child, child.mem_fd());
    return found && found->method() == Method::mem_fd && !probe(child, -1) &&
           !probe(child, child.mem_fd(), Method::process_vm);
  }));
}

TEST_CASE("an ordinary user reaches a program of its own both ways") {
  CHECK(test::holds_without_privilege([] {
    ChildProgram child(1);
    for (const Method method : {Method::process_vm, Method::mem_fd}) {
      const auto space = probe(child, child.mem_fd(), method);
      uint64_t value = 42;
      if (!space || !space->move_range(Direction::to_program, child.base() + 8,
                                       reinterpret_cast<std::byte*>(&value), sizeof value)) {
        return false;
      }
      if (child.memory()[8] != std::byte{42}) return false;
      child.memory()[8] = std::byte{0};
    }
    return true;
  }));
}

}  // namespace
}  // namespace rocemu::dma
