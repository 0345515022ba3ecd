#include "dpdk_io/ethdev/memif.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "dpdk_io/ethdev/device_arguments.h"

namespace rocemu::dpdk_io {
namespace {

constexpr std::string_view kDriver = "net_memif";
constexpr std::string_view kDefaultSocket = "/run/memif.sock";
constexpr int kPatienceMs = 100;
constexpr unsigned kBufferBytes = 4352;  // a multiple of 128 that holds an MTU of 4200
constexpr unsigned kDriversBufferBytes = 2048;
constexpr unsigned kDriversSlotsLog2 = 10;
constexpr unsigned kMaxSlotsLog2 = 14;
constexpr unsigned kLinkHeaderBytes = 18;  // Ethernet with a VLAN tag

unsigned number_in(std::string_view arguments, std::string_view key, unsigned otherwise) {
  const std::string_view text = device_argument(arguments, key).value_or("");
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : otherwise;
}

}  // namespace

bool is_memif(std::string_view arguments) { return arguments.starts_with(kDriver); }

std::string with_memif_defaults(std::string_view arguments) {
  std::string all(arguments);
  if (is_memif(arguments) && !device_argument(arguments, "bsize"))
    all += ",bsize=" + std::to_string(kBufferBytes);
  return all;
}

unsigned memif_mtu_bytes(std::string_view arguments) {
  return std::max(number_in(arguments, "bsize", kDriversBufferBytes), kLinkHeaderBytes) -
         kLinkHeaderBytes;
}

unsigned memif_slots(std::string_view arguments) {
  return 1u << std::min(number_in(arguments, "rsize", kDriversSlotsLog2), kMaxSlotsLog2);
}

bool is_memif_client(std::string_view arguments) {
  if (!is_memif(arguments)) return false;
  const std::string_view role = device_argument(arguments, "role").value_or("client");
  return role != "server" && role != "master";
}

bool memif_server_answers(std::string_view arguments) {
  const std::string_view path = device_argument(arguments, "socket").value_or(kDefaultSocket);
  // The driver looks for the word.
  const bool abstract = device_argument(arguments, "socket-abstract").value_or("yes").find("yes") !=
                        std::string_view::npos;
  sockaddr_un address{};
  if (path.size() + 1 >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path + (abstract ? 1 : 0));
  const size_t length = offsetof(sockaddr_un, sun_path) + path.size() + 1;
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                           static_cast<socklen_t>(length)) != 0)
    return false;
  pollfd hello{socket.get(), POLLIN, 0};
  char byte;
  return ::poll(&hello, 1, kPatienceMs) == 1 && ::recv(socket.get(), &byte, 1, MSG_PEEK) == 1;
}

}  // namespace rocemu::dpdk_io
