#include "emulator/daemon/rings/event_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "verbs_shim/abi/control.h"

namespace rocemu::daemon {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  UniqueFd read;
  UniqueFd write;
};

}  // namespace

TEST_CASE("events come out of the pipe as libibverbs reads them") {
  Pipe pipe;
  auto events = EventWriter::open(pipe.write);
  REQUIRE(events);
  CHECK((*events)->completion_event(0x1122334455667788));
  uint64_t cq = 0;
  REQUIRE(::read(pipe.read.get(), &cq, sizeof(cq)) == sizeof(cq));
  CHECK(cq == 0x1122334455667788);

  CHECK((*events)->async_event(5, 3));
  rocemu_async_event event{};
  REQUIRE(::read(pipe.read.get(), &event, sizeof(event)) == sizeof(event));
  CHECK(event.element == 5);
  CHECK(event.event_type == 3);
  CHECK(event.reserved == 0);
}

TEST_CASE("a full pipe does not hold the writer up, whatever the program's flags say") {
  Pipe pipe;  // its write end would block
  auto events = EventWriter::open(pipe.write);
  REQUIRE(events);
  size_t written = 0;
  while ((*events)->completion_event(written)) REQUIRE(++written < 1'000'000);
  CHECK(written > 0);
  uint64_t first = 1;
  char page[4096];
  REQUIRE(::read(pipe.read.get(), page, sizeof(page)) == sizeof(page));
  CHECK((*events)->completion_event(first));
}

TEST_CASE("tokens that are taken back are not there any more, and no others are taken") {
  Pipe pipe;
  auto events = EventWriter::open(pipe.write);
  REQUIRE(events);
  for (int i = 0; i < 200; ++i) REQUIRE((*events)->token());
  CHECK((*events)->take_back(150) == 150);
  char page[4096];
  CHECK(::read(pipe.read.get(), page, sizeof(page)) == 50);
  CHECK((*events)->take_back(1) == 0);  // the program was quicker, and the writer does not wait
}

TEST_CASE("a pipe that may not be read is left as it is") {
  if (::geteuid() == 0) {
    WARN("root may read any pipe: not checked");
    return;
  }
  Pipe pipe;
  auto events = EventWriter::open(pipe.write);
  REQUIRE(events);
  REQUIRE((*events)->token());
  REQUIRE(::fchmod(pipe.write.get(), 0200) == 0);
  CHECK((*events)->take_back(1) == 0);
  char byte = 1;
  CHECK(::read(pipe.read.get(), &byte, 1) == 1);
}

TEST_CASE("events for a pipe without a reader are nobody's and count as written") {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  auto events = EventWriter::open(pipe.write);
  REQUIRE(events);
  pipe.read.reset();
  CHECK((*events)->completion_event(1));
}

TEST_CASE("only a pipe that can be written to is taken") {
  Pipe pipe;
  const UniqueFd eventfd(::eventfd(0, EFD_CLOEXEC));
  const UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  CHECK(EventWriter::open(pipe.read).error() == EINVAL);
  CHECK(EventWriter::open(eventfd).error() == EINVAL);
  CHECK(EventWriter::open(file).error() == EINVAL);
  CHECK(EventWriter::open(UniqueFd()).error() == EINVAL);
}

}  // namespace rocemu::daemon
