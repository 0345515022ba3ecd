#include "tests/interop/meeting.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/e2e/tools/failure.h"

namespace rocemu::interop {
namespace {

constexpr int kTries = 200;
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr timeval kPatience{60, 0};

UniqueFd tcp_socket() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) e2e::fail_errno(errno, "socket");
  return fd;
}

UniqueFd go_to(const sockaddr_in& peer) {
  for (int i = 0; i < kTries; ++i) {
    UniqueFd fd = tcp_socket();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) return fd;
    std::this_thread::sleep_for(kBetweenTries);
  }
  e2e::fail_errno(errno, "connect");
}

UniqueFd wait_at(const sockaddr_in& own) {
  const UniqueFd listener = tcp_socket();
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      ::listen(listener.get(), 1) != 0)
    e2e::fail_errno(errno, "listen");
  UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) e2e::fail_errno(errno, "accept");
  return fd;
}

}  // namespace

Meeting::Meeting(const std::string& host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (!host.empty() && ::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    e2e::fail("'%s' is no IPv4 address", host.c_str());
  fd_ = host.empty() ? wait_at(address) : go_to(address);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
}

void Meeting::say(const std::string& line) {
  const std::string text = line + "\n";
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(text.size()))
    e2e::fail_errno(errno, "send to the other end");
}

std::string Meeting::hear() {
  size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    char bytes[512];
    const ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (count == 0) e2e::fail("the other end has left");
    if (count < 0) e2e::fail_errno(errno, "waiting for the other end");
    received_.append(bytes, static_cast<size_t>(count));
  }
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void Meeting::keep_step(const std::string& step) {
  say(step);
  const std::string heard = hear();
  if (heard != step) e2e::fail("the other end is at '%s', not '%s'", heard.c_str(), step.c_str());
}

}  // namespace rocemu::interop
