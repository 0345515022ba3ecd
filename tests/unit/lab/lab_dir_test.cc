#include "emulator/lab/lab_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "emulator/cli/process/exit_codes.h"
#include "emulator/lab/namespaces.h"

namespace rocemu::lab {
namespace {

namespace fs = std::filesystem;

// A lab's directory that is found as that of the lab on whose host the test is.
class OnHost {
 public:
  OnHost() {
    char name[] = "/tmp/rocemu-lab-test-XXXXXX";
    path = ::mkdtemp(name);
    for (const char* folder : {"pids", "run"}) fs::create_directory(path / folder);
    ::setenv("ROCEMU_LAB", path.c_str(), 1);
  }
  ~OnHost() {
    ::unsetenv("ROCEMU_LAB");
    fs::remove_all(path);
  }

  fs::path path;
};

TEST_CASE("a lab's hosts are in their order, and its other holders are no hosts") {
  const OnHost host;
  const LabDir dir = LabDir::find("");
  CHECK(dir.path() == host.path);
  for (const char* holder : {"h10", "wire", "h2", "cable", "h1"}) dir.note(holder, 77);
  CHECK(dir.hosts() == std::vector<std::string>{"h1", "h2", "h10"});
  CHECK(dir.holders().size() == 5);
  CHECK(dir.pid_of("h10") == 77);
}

TEST_CASE("a folder that is no lab's is not taken for one") {
  const OnHost host;
  fs::remove(host.path / "run");
  CHECK_THROWS_AS(LabDir::find(""), cli::Failure);
}

TEST_CASE("a name stays within the folder of all labs") {
  for (const char* name : {"", ".", "..", "a/b", "_a", "-a"})
    CHECK_THROWS_AS(require_lab_name(name), cli::Failure);
  CHECK_NOTHROW(require_lab_name("a.b-c_1"));
}

TEST_CASE("a holder lives as long as a process of its number has the lab's mark") {
  const OnHost host;
  const LabDir dir = LabDir::find("");
  dir.note("h1", ::getpid());
  CHECK_FALSE(dir.lives("h1"));

  const pid_t holder = start([&] { ::execlp("sleep", dir.mark().c_str(), "60", nullptr); });
  dir.note("h1", holder);
  for (int tries = 0; tries < 500 && !dir.lives("h1"); ++tries) ::usleep(10'000);
  CHECK(dir.lives("h1"));
  ::kill(holder, SIGTERM);
  CHECK_FALSE(succeeded(holder));
  CHECK_FALSE(dir.lives("h1"));
}

TEST_CASE("a holder that lives where its number says nothing keeps the lab from being taken down") {
  const OnHost host;
  const LabDir dir = LabDir::find("");
  dir.note("h1", ::getpid());
  CHECK_FALSE(dir.held("h1"));
  CHECK_NOTHROW(dir.require_reach());

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t holder = start([&] {
    dir.hold("h1");
    CHECK(::write(ends[1], "!", 1) == 1);
    ::execlp("sleep", "sleep", "60", nullptr);  // without the mark, as from afar
  });
  char said;
  REQUIRE(::read(ends[0], &said, 1) == 1);
  CHECK(dir.held("h1"));
  CHECK_THROWS_AS(dir.require_reach(), cli::Failure);
  ::kill(holder, SIGTERM);
  CHECK_FALSE(succeeded(holder));
  CHECK_FALSE(dir.held("h1"));
  CHECK_NOTHROW(dir.require_reach());
  for (const int end : ends) ::close(end);
}

TEST_CASE("a child's output is had when it succeeds alone") {
  CHECK(output_of([] { CHECK(::write(STDOUT_FILENO, "said", 4) == 4); }) == "said");
  CHECK(output_of([] { throw std::runtime_error("why"); }) == std::nullopt);
  CHECK(output_of([] { redirect(STDOUT_FILENO, "/no/such/file", O_WRONLY); }) == std::nullopt);
}

}  // namespace
}  // namespace rocemu::lab
