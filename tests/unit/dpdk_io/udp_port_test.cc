#include "dpdk_io/kernel/udp_port.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <stdexcept>
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
    REQUIRE(::inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1);
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

  // Tests run at the same time, each in a process.
  const std::string address =
      "127.83." + std::to_string(::getpid() / 256 % 256) + "." + std::to_string(::getpid() % 256);
  static constexpr uint16_t kUdpPort = 47911;
  struct Started {
    Started() { need_eal(); }
  } started;
  FramePool pool{"udp_port", 512, 2048};
  UdpPort port{std::array{UdpPort::LocalAddress{parse_ip_address(address).value(), 0}}, kUdpPort,
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

TEST_CASE_METHOD(Loopback, "an address that is flooded leaves the port's others their turn") {
  const std::string second = "127.84." + address.substr(address.find('.', 4) + 1);
  const auto local = [](const std::string& text) {
    return UdpPort::LocalAddress{parse_ip_address(text).value(), 0};
  };
  UdpPort both(std::array{local("127.85" + address.substr(6)), local(second)}, kUdpPort, pool,
               kNoSeal);
  const auto send_to = [&](const std::string& host, unsigned bytes, unsigned segment_bytes) {
    sockaddr_in there = to;
    REQUIRE(::inet_pton(AF_INET, host.c_str(), &there.sin_addr) == 1);
    const int size = static_cast<int>(segment_bytes);
    REQUIRE(::setsockopt(program.get(), IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0);
    const std::string text(bytes, 'x');
    REQUIRE(::sendto(program.get(), text.data(), bytes, 0,
                     reinterpret_cast<const sockaddr*>(&there), sizeof there) == bytes);
  };
  for (int i = 0; i < 8; ++i) send_to("127.85" + address.substr(6), 64, 1);
  send_to(second, 100, 0);
  bool came = false;
  for (int i = 0; i < 2; ++i) {
    std::array<rte_mbuf*, 64> burst;
    const unsigned count = both.receive(0, burst);
    for (unsigned j = 0; j < count; ++j) came = came || rte_pktmbuf_pkt_len(burst[j]) >= 100;
    FramePool::free_bulk({burst.data(), count});
  }
  CHECK(came);
}

TEST_CASE_METHOD(Loopback, "marks of congestion come with frames, and leave with them") {
  const int marked = 26 << 2 | 3;
  const int on = 1;
  REQUIRE(::setsockopt(program.get(), IPPROTO_IP, IP_TOS, &marked, sizeof marked) == 0);
  REQUIRE(::setsockopt(program.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on) == 0);
  send(1);
  std::array<rte_mbuf*, 1> burst;
  REQUIRE(port.receive(0, burst) == 1);
  auto* const ip =
      rte_pktmbuf_mtod_offset(burst[0], rte_ipv4_hdr*, sizeof(rte_ether_hdr));  // no options
  CHECK(ip->type_of_service == marked);
  auto* const udp = reinterpret_cast<rte_udp_hdr*>(ip + 1);
  const auto program_address = ip->src_addr;
  const auto program_port = udp->src_port;
  ip->src_addr = ip->dst_addr;
  ip->dst_addr = program_address;
  udp->src_port = udp->dst_port;
  udp->dst_port = program_port;
  REQUIRE(port.transmit(0, burst) == 1);
  char bytes[200];
  alignas(cmsghdr) char control[64];
  iovec part{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  REQUIRE(::recvmsg(program.get(), &message, 0) == 100);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  REQUIRE(header != nullptr);
  CHECK(header->cmsg_type == IP_TOS);
  CHECK(*CMSG_DATA(header) == marked);
}

TEST_CASE_METHOD(Loopback, "marks of congestion come over IPv6") {
  std::optional<UdpPort> port6;
  const IpAddress loopback = parse_ip_address("::1").value();
  try {
    port6.emplace(std::array{UdpPort::LocalAddress{loopback, 0}}, kUdpPort, pool, kNoSeal);
  } catch (const std::runtime_error& error) {
    WARN("skipped: " << error.what());  // this machine has no IPv6
    return;
  }
  const UniqueFd sender(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int marked = 26 << 2 | 3;
  REQUIRE(::setsockopt(sender.get(), IPPROTO_IPV6, IPV6_TCLASS, &marked, sizeof marked) == 0);
  sockaddr_in6 to6{};
  to6.sin6_family = AF_INET6;
  to6.sin6_port = htons(kUdpPort);
  to6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  REQUIRE(::sendto(sender.get(), "abcd", 4, 0, reinterpret_cast<const sockaddr*>(&to6),
                   sizeof to6) == 4);
  std::array<rte_mbuf*, 1> burst;
  REQUIRE(port6->receive(0, burst) == 1);
  const auto* const ip =
      rte_pktmbuf_mtod_offset(burst[0], const rte_ipv6_hdr*, sizeof(rte_ether_hdr));
  CHECK((rte_be_to_cpu_32(ip->vtc_flow) >> 20 & 0xff) == static_cast<uint32_t>(marked));
  FramePool::free_bulk(burst);
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
