#include "emulator/script/live/line_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace rocemu::script {

namespace {

constexpr size_t kMaxLineBytes = 1 << 20;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void answer_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

SocketAddress::SocketAddress(const IpAddress& address, uint16_t port) {
  if (address.is_ipv4()) {
    auto& in = reinterpret_cast<sockaddr_in&>(storage);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.ipv4_bytes(), sizeof in.sin_addr);
    length = sizeof in;
  } else {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(storage);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    std::memcpy(&in6.sin6_addr, address.bytes.data(), sizeof in6.sin6_addr);
    length = sizeof in6;
  }
}

IpAddress SocketAddress::ip() const {
  return storage.ss_family == AF_INET
             ? IpAddress::of_ipv4(&reinterpret_cast<const sockaddr_in&>(storage).sin_addr)
             : IpAddress::of_ipv6(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
}

uint16_t SocketAddress::port() const {
  return ntohs(storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

LineSocket LineSocket::connect(const IpAddress& own, const IpAddress& peer, uint16_t port) {
  SocketAddress to(peer, port);
  UniqueFd fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("a TCP socket");
  if (own != IpAddress{}) {
    SocketAddress from(own, 0);
    if (::bind(fd.get(), from.get(), from.length) != 0) fail("the own address");
  }
  if (::connect(fd.get(), to.get(), to.length) != 0) fail("connect to the agent");
  answer_at_once(fd.get());
  return LineSocket(std::move(fd));
}

UniqueFd LineSocket::listen(uint16_t port) {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("a TCP socket");
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  SocketAddress any(IpAddress{}, port);
  if (::bind(fd.get(), any.get(), any.length) != 0 || ::listen(fd.get(), 4) != 0)
    fail("listen for scripts");
  return fd;
}

void LineSocket::write(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t bytes = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno != EINTR) fail("write to the other end");
    if (bytes > 0) sent += static_cast<size_t>(bytes);
  }
}

std::optional<std::string> LineSocket::read() {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kMaxLineBytes) return std::nullopt;
    char bytes[4096];
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    received_.append(bytes, static_cast<size_t>(got));
  }
}

IpAddress LineSocket::own_address() const {
  SocketAddress address;
  if (::getsockname(fd_.get(), address.get(), &address.length) != 0) fail("the own address");
  return address.ip();
}

IpAddress LineSocket::peer_address() const {
  SocketAddress address;
  if (::getpeername(fd_.get(), address.get(), &address.length) != 0) fail("the peer's address");
  return address.ip();
}

}  // namespace rocemu::script
