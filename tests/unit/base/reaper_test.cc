#include "base/reaper/reaper.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <vector>

namespace rocemu {
namespace {

using Clock = std::chrono::steady_clock;

// A TCP connection whose one end has more to send than the other takes, and is to wait for that.
struct Lingering {
  Lingering() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), at, length) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), at, &length) == 0);
    sender = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(sender.get(), at, length) == 0);
    receiver = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(receiver);
    const linger on{1, 3600};
    REQUIRE(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &on, sizeof(on)) == 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  }
  UniqueFd sender;
  UniqueFd receiver;
};

// Whether the other end of a pipe or stream has gone, within ten seconds.
bool hangs_up(int fd) {
  pollfd poll{fd, POLLRDHUP, 0};
  return ::poll(&poll, 1, 10'000) == 1 && (poll.revents & (POLLHUP | POLLRDHUP)) != 0;
}

}  // namespace

TEST_CASE("a socket that lingers keeps nobody from anything") {
  Lingering tcp;
  const auto begun = Clock::now();
  close_elsewhere(std::move(tcp.sender));
  CHECK(Clock::now() - begun < std::chrono::seconds(5));
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd read(ends[0]);
  close_elsewhere(UniqueFd(ends[1]));
  CHECK(hangs_up(read.get()));
}

TEST_CASE("all that is given to the reaper is closed, in whatever number") {
  std::vector<UniqueFd> reads;
  for (int i = 0; i < 200; ++i) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reads.emplace_back(ends[0]);
    close_elsewhere(UniqueFd(ends[1]));
  }
  for (const UniqueFd& read : reads) CHECK(hangs_up(read.get()));
}

TEST_CASE("memory is unmapped") {
  constexpr size_t kBytes = 1 << 20;
  void* const at = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  unmap_elsewhere(at, kBytes);
  unsigned char in_memory[kBytes / 4096];
  const auto until = Clock::now() + std::chrono::seconds(10);
  int found;
  do found = ::mincore(at, kBytes, in_memory);
  while (found == 0 && Clock::now() < until);
  CHECK((found == -1 && errno == ENOMEM));
}

TEST_CASE("nothing is closed where there is nothing") { close_elsewhere(UniqueFd()); }

}  // namespace rocemu
