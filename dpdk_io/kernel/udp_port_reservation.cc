#include "dpdk_io/kernel/udp_port_reservation.h"

#include <linux/filter.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace rocemu::dpdk_io {
namespace {

[[noreturn]] void fail(const std::string& interface, uint16_t udp_port) {
  std::string message = "UDP port " + std::to_string(udp_port) + " of interface " + interface +
                        ": " + std::strerror(errno);
  if (errno == EADDRINUSE)
    message +=
        ". Another NIC is on this interface: another rocemud, or Linux's rdma_rxe (see: rdma "
        "link). End it, or use another interface";
  throw std::runtime_error(message);
}

void set(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

UniqueFd reserve_udp_port(const std::string& interface, uint16_t udp_port) {
  constexpr int kType = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd fd(::socket(AF_INET6, kType, 0));
  const bool ipv6 = static_cast<bool>(fd);
  if (!ipv6) fd = UniqueFd(::socket(AF_INET, kType, 0));
  if (!fd) fail(interface, udp_port);
  if (ipv6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set(fd.get(), SOL_SOCKET, SO_RCVBUF, 0);  // the least there is
  // GSO batches as they are: others would be cut into frames only to be thrown away. It is a
  // favour.
  set(fd.get(), IPPROTO_UDP, UDP_GRO, 1);
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, drop_all};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    fail(interface, udp_port);
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                   static_cast<socklen_t>(interface.size())) != 0)
    fail(interface, udp_port);
  int result;
  if (ipv6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(udp_port);
    result = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any);
  } else {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(udp_port);
    result = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any);
  }
  if (result != 0) fail(interface, udp_port);
  return fd;
}

}  // namespace rocemu::dpdk_io
