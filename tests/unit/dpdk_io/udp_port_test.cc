#include "dpdk_io/kernel/udp_port.h"

#include <arpa/inet.h>
#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "base/net/text.h"
#include "dpdk_io/kernel/socket_buffers.h"
#include "tests/unit/dpdk_io/shared_eal.h"

namespace rocemu::dpdk_io {
namespace {

constexpr IdentificationSeal kNoSeal{[](std::span<std::byte>, uint16_t) {},
                                     [](std::span<const std::byte>) { return true; }};

// A port on a loopback address, and a program that sends to it.
struct Loopback {
  Loopback() {
    const sockaddr_in any{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    REQUIRE(::bind(program.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
    to.sin_family = AF_INET;
    to.sin_port = htons(kUdpPort);
    REQUIRE(::inet_pton(AF_INET, kAddress, &to.sin_addr) == 1);
  }
  void send(unsigned datagrams) {
    const std::string bytes(100, 'x');
    for (unsigned i = 0; i < datagrams; ++i)
      REQUIRE(::sendto(program.get(), bytes.data(), bytes.size(), 0,
                       reinterpret_cast<const sockaddr*>(&to), sizeof to) == 100);
  }
  unsigned receive() {
    std::array<rte_mbuf*, 64> burst;
    const unsigned count = port.receive(0, burst);
    FramePool::free_bulk({burst.data(), count});
    return count;
  }

  static constexpr const char* kAddress = "127.83.1.7";
  static constexpr uint16_t kUdpPort = 47911;
  struct Started {
    Started() { need_eal(); }
  } started;
  FramePool pool{"udp_port", 512, 2048};
  UdpPort port{std::array{UdpPort::LocalAddress{parse_ip_address(kAddress).value(), 0}}, kUdpPort,
               pool, kNoSeal};
  UniqueFd program{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_in to{};
};

}  // namespace

TEST_CASE_METHOD(Loopback, "a port that has not handed out all that arrived says so") {
  CHECK_FALSE(port.has_work());
  send(40);
  unsigned received = receive();
  CHECK(received < 40);
  while (port.has_work()) received += receive();
  CHECK(received == 40);
  CHECK(receive() == 0);
}

TEST_CASE_METHOD(Loopback, "what a socket has no room for is counted") {
  const int few_bytes = 4096;
  REQUIRE(::setsockopt(port.poll_fd(), SOL_SOCKET, SO_RCVBUF, &few_bytes, sizeof few_bytes) == 0);
  send(100);
  unsigned received = 0;
  while (const unsigned count = receive()) received += count;
  CHECK(received < 100);
  CHECK(port.stats().dropped(DropReason::queue_full) == 100 - received);
}

}  // namespace rocemu::dpdk_io
