// Lines of text over TCP, between a script and the agent that calls verbs for it.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/net/ip_address.h"
#include "base/unique_fd.h"

namespace rocemu::script {

inline constexpr uint16_t kAgentPort = 4792;
inline constexpr const char* kAgentReady = "ready";

// IPv4 or IPv6 as the address is.
struct SocketAddress {
  SocketAddress() = default;
  SocketAddress(const IpAddress& address, uint16_t port);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  IpAddress ip() const;
  uint16_t port() const;

  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
};

class LineSocket {
 public:
  explicit LineSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  // Throws std::system_error.
  static LineSocket connect(const IpAddress& own, const IpAddress& peer, uint16_t port);
  static UniqueFd listen(uint16_t port);

  // Throws std::system_error.
  void write(const std::string& line);
  // Waits. Empty: the other end has closed, or sends lines without an end.
  std::optional<std::string> read();

  // The addresses of both ends.
  IpAddress own_address() const;
  IpAddress peer_address() const;

 private:
  UniqueFd fd_;
  std::string received_;
};

}  // namespace rocemu::script
