#include "verbs_shim/exchange/message_socket.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"

using namespace rocemu;
using namespace rocemu::exchange;

namespace {

struct Ends {
  Ends() {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    a = UniqueFd(pair[0]);
    b = UniqueFd(pair[1]);
  }
  Received receive(int flags = MSG_DONTWAIT) {
    return receive_message(b.get(), text.data(), text.size(), flags,
                           [this](int fd) { fds.emplace_back(fd); });
  }
  UniqueFd a;
  UniqueFd b;
  std::array<char, 8> text{};
  std::vector<UniqueFd> fds;
};

bool same_file(int a, int b) {
  struct stat first = {}, second = {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_ino == second.st_ino &&
         first.st_dev == second.st_dev;
}

}  // namespace

TEST_CASE("a message arrives whole, with its descriptors in their order") {
  Ends ends;
  const int sent[] = {ends.a.get(), ends.b.get()};
  REQUIRE(send_message(ends.a.get(), "abc", 3, {sent, 2}));
  const Received received = ends.receive();
  CHECK(received.length_bytes == 3);
  CHECK((received.flags & (MSG_TRUNC | MSG_CTRUNC)) == 0);
  CHECK(std::memcmp(ends.text.data(), "abc", 3) == 0);
  REQUIRE(ends.fds.size() == 2);
  CHECK(same_file(ends.fds[0].get(), sent[0]));
  CHECK(same_file(ends.fds[1].get(), sent[1]));
  CHECK((::fcntl(ends.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a message longer than the buffer says so, and with MSG_TRUNC how long it was") {
  Ends ends;
  REQUIRE(send_message(ends.a.get(), "0123456789", 10));
  REQUIRE(send_message(ends.a.get(), "0123456789", 10));
  CHECK((ends.receive().flags & MSG_TRUNC) != 0);
  CHECK(ends.receive(MSG_DONTWAIT | MSG_TRUNC).length_bytes == 10);
}

TEST_CASE("a message has at most as many descriptors as there is room for") {
  Ends ends;
  std::array<int, ROCEMU_MESSAGE_MAX_FDS> sent;
  sent.fill(ends.a.get());
  REQUIRE(send_message(ends.a.get(), "x", 1, {sent.data(), sent.size()}));
  CHECK((ends.receive().flags & MSG_CTRUNC) == 0);
  CHECK(ends.fds.size() == sent.size());
}

TEST_CASE("what cannot be sent or received is told by errno, an end by a length of 0") {
  Ends ends;
  CHECK(ends.receive().length_bytes < 0);
  CHECK(errno == EAGAIN);
  const int closed = -1;
  CHECK_FALSE(send_message(ends.a.get(), "x", 1, {&closed, 1}));
  CHECK(errno == EBADF);
  ends.a.reset();
  CHECK(ends.receive().length_bytes == 0);
  CHECK_FALSE(send_message(ends.b.get(), "x", 1));
  CHECK(errno == EPIPE);
}
