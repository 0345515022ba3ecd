#include "verbs_shim/provider/context/event_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using rocemu::provider::EventPipe;
using rocemu::provider::Passage;

namespace {

struct Pipe {
  EventPipe events;
  Passage passage;
  int nic = -1;

  Pipe() { REQUIRE(events.open(nic) == 0); }
  ~Pipe() {
    events.close_write_end();
    passage.close();
    close(events.read_end());
    if (nic >= 0) close(nic);
  }
  bool send(uint64_t object) { return write(nic, &object, sizeof(object)) == sizeof(object); }
  bool has_event() {
    pollfd wait = {events.read_end(), POLLIN, 0};
    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN) != 0;
  }
  // 0: none could be read. Threads call it, and assertions are for one at a time.
  uint64_t read_event() {
    uint64_t object = 0;
    return read(events.read_end(), &object, sizeof(object)) == sizeof(object) ? object : 0;
  }
};

}  // namespace

TEST_CASE("purging takes one object's events and leaves the others in order") {
  Pipe pipe;
  for (uint64_t object : {1, 2, 1, 3, 1}) REQUIRE(pipe.send(object));
  CHECK(pipe.events.purge(pipe.passage, 8, 1) == 3);
  CHECK(pipe.read_event() == 2);
  CHECK(pipe.read_event() == 3);
  CHECK_FALSE(pipe.has_event());
}

TEST_CASE("purging needs no descriptor that is not there yet") {
  Pipe pipe;
  REQUIRE(pipe.passage.open());
  for (uint64_t object : {1, 2, 1}) REQUIRE(pipe.send(object));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const unsigned purged = pipe.events.purge(pipe.passage, 8, 1);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(purged == 2);
}

TEST_CASE("purging an empty pipe doesn't wait") {
  Pipe pipe;
  CHECK(pipe.events.purge(pipe.passage, 8, 1) == 0);
  // Nor does it change how the program's own reads wait.
  CHECK((fcntl(pipe.events.read_end(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("purging a full pipe loses nothing") {
  Pipe pipe;
  uint64_t sent = 0;
  while (pipe.send(sent % 2)) ++sent;
  CHECK(pipe.events.purge(pipe.passage, 8, 1) == sent / 2);
  unsigned left = 0;
  while (pipe.has_event()) {
    CHECK(pipe.read_event() == 0);
    ++left;
  }
  CHECK(left == sent - sent / 2);
}

TEST_CASE("a thread that waits for events comes back when the NIC is gone, also after a purge") {
  Pipe pipe;
  REQUIRE(pipe.send(1));
  REQUIRE(pipe.send(2));
  CHECK(pipe.events.purge(pipe.passage, 8, 1) == 1);
  close(pipe.nic);
  pipe.nic = -1;
  CHECK(pipe.read_event() == 2);
  uint64_t object;
  CHECK(read(pipe.events.read_end(), &object, sizeof(object)) == 0);
}

TEST_CASE("events of others survive purges while another thread reads them") {
  Pipe pipe;
  constexpr unsigned kRounds = 300;
  std::atomic<unsigned> read_of_others{0};
  std::thread reader([&] {
    for (unsigned i = 0; i < kRounds; ++i) read_of_others += pipe.read_event() == 2;
  });
  unsigned purged = 0;
  for (unsigned i = 0; i < kRounds; ++i) {
    REQUIRE(pipe.send(2));
    purged += pipe.events.purge(pipe.passage, 8, 1);
  }
  reader.join();
  CHECK(purged == 0);
  CHECK(read_of_others == kRounds);
  CHECK_FALSE(pipe.has_event());
}
