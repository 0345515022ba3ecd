#include "dpdk_io/kernel/socket_buffers.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace rocemu::dpdk_io {
namespace {

constexpr int kWantedBytes = 8 << 20;

void enlarge(int fd, int forced, int asked) {
  if (::setsockopt(fd, SOL_SOCKET, forced, &kWantedBytes, sizeof kWantedBytes) != 0)
    ::setsockopt(fd, SOL_SOCKET, asked, &kWantedBytes, sizeof kWantedBytes);
}

}  // namespace

void enlarge_buffers(int fd) noexcept {
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
}

unsigned receive_buffer_bytes(int fd) noexcept {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  ::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  return static_cast<unsigned>(std::max(bytes, 0));
}

uint64_t overflows(int fd) noexcept {
  std::array<uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof info;
  ::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &length);
  return info[SK_MEMINFO_DROPS];
}

}  // namespace rocemu::dpdk_io
