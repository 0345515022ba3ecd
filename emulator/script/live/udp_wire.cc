#include "emulator/script/live/udp_wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "emulator/script/live/line_socket.h"
#include "emulator/script/play/stage.h"
#include "emulator/wire/build.h"
#include "emulator/wire/icrc_identification.h"

namespace rocemu::script {

namespace {

constexpr size_t kMaxDatagramBytes = 65536;
constexpr size_t kControlBytes = 64;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void set(int fd, int level, int name, int value) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) fail("an option of the UDP socket");
}

size_t ip_bytes(const IpAddress& address) { return address.is_ipv4() ? kIpv4Bytes : kIpv6Bytes; }

uint8_t traffic_class_of(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const bool tos = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS;
    const bool tclass = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS;
    uint8_t first = 0;
    // Both are small numbers: of a TOS one byte, of a class an int.
    if (tos || tclass) std::memcpy(&first, CMSG_DATA(c), sizeof first);
    if (first != 0) return first;
  }
  return 0;
}

}  // namespace

UdpWire::UdpWire(const IpAddress& own, const IpAddress& peer) : own_(own), peer_(peer) {
  SocketAddress address(own, wire::kRoceUdpPort);
  fd_ = UniqueFd(::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_) fail("a UDP socket");
  // DF, and so identification 0, of which the ICRC is made (udp_socket.h of dpdk_io/kernel).
  if (own.is_ipv4()) {
    set(fd_.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    set(fd_.get(), IPPROTO_IP, IP_RECVTOS, 1);
  } else {
    set(fd_.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  }
  if (::bind(fd_.get(), address.get(), address.length) != 0)
    fail("UDP port 4791 of the own address, which a NIC may have");
}

void UdpWire::send(std::span<const std::byte> frame) {
  const bool ipv4 = own_.is_ipv4();
  // make_frame() writes an Ethernet header without a tag.
  const std::byte* const ip = frame.data() + kEthernetBytes;
  const int traffic_class = ipv4 ? static_cast<int>(ip[1])
                                 : static_cast<int>((ip[0] & std::byte{0x0f}) << 4 | ip[1] >> 4);
  if (ipv4) {
    set(fd_.get(), IPPROTO_IP, IP_TOS, traffic_class);
  } else {
    set(fd_.get(), IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
  }
  const auto after_udp = frame.subspan(kEthernetBytes + ip_bytes(own_) + kUdpBytes);
  SocketAddress to(peer_, wire::kRoceUdpPort);
  if (::sendto(fd_.get(), after_udp.data(), after_udp.size(), 0, to.get(), to.length) < 0)
    fail("send to the peer");
}

std::optional<std::vector<std::byte>> UdpWire::receive() {
  std::vector<std::byte> bytes(kMaxDatagramBytes);
  for (;;) {
    std::array<std::byte, kControlBytes> control;
    iovec data{bytes.data(), bytes.size()};
    SocketAddress from;
    msghdr message{};
    message.msg_name = from.get();
    message.msg_namelen = from.length;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd_.get(), &message, 0);
    // ICMP errors of what was sent before come here as well.
    if (got < 0 && (errno == EINTR || errno == ECONNREFUSED)) continue;
    if (got < 0) return std::nullopt;
    if (from.ip() != peer_) continue;
    return frame_of(std::span(bytes).first(static_cast<size_t>(got)), traffic_class_of(message),
                    from.port());
  }
}

std::vector<std::byte> UdpWire::frame_of(std::span<const std::byte> after_udp,
                                         uint8_t traffic_class, uint16_t source_port) const {
  wire::Ip ip;
  ip.source = wire::Gid{peer_};
  ip.destination = wire::Gid{own_};
  ip.traffic_class = traffic_class;
  const auto build = [&] {
    const wire::HeaderTemplate headers({}, ip, {.source_port = source_port});
    std::vector<std::byte> frame(headers.size_bytes());
    frame.insert(frame.end(), after_udp.begin(), after_udp.end());
    headers.write(frame.data(), after_udp.size());
    return frame;
  };
  std::vector<std::byte> frame = build();
  // The ICRC is also of the identification, which the kernel keeps to itself.
  if (const auto identification =
          wire::identification_by_icrc(std::span(frame).subspan(kEthernetBytes))) {
    ip.identification = *identification;
    frame = build();
  }
  return frame;
}

void UdpWire::wait(TimeNs wait_ns) {
  pollfd entry{fd_.get(), POLLIN, 0};
  const timespec time{static_cast<time_t>(wait_ns / 1'000'000'000),
                      static_cast<long>(wait_ns % 1'000'000'000)};
  ::ppoll(&entry, 1, &time, nullptr);
}

}  // namespace rocemu::script
