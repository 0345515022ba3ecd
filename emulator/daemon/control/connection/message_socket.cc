#include "emulator/daemon/control/connection/message_socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>

#include "verbs_shim/exchange/message_socket.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace rocemu::daemon {

ReceiveResult receive_message(int socket, ReceivedMessage& message) {
  message.length_bytes = 0;
  message.close_fds();
  bool all_fds = true;
  const exchange::Received received = exchange::receive_message(
      socket, message.buffer.data(), message.buffer.size(), MSG_DONTWAIT, [&](int fd) {
        UniqueFd owned(fd);
        if (message.fd_count == message.fds.size()) {
          all_fds = false;
          close_elsewhere(std::move(owned));
        } else {
          message.fds[message.fd_count++] = std::move(owned);
        }
      });
  if (received.length_bytes < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? ReceiveResult::nothing : ReceiveResult::ended;
  if (!all_fds || (received.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return ReceiveResult::truncated;
  if (received.length_bytes == 0) return ReceiveResult::ended;
  message.length_bytes = static_cast<size_t>(received.length_bytes);
  return ReceiveResult::message;
}

SendResult send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (exchange::send_message(socket, bytes.data(), bytes.size(), {fds.data(), fds.size()},
                             MSG_DONTWAIT))
    return SendResult::sent;
  return errno == EAGAIN || errno == EWOULDBLOCK ? SendResult::full : SendResult::ended;
}

bool peer_credentials(int socket, PeerCredentials& credentials) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  credentials = {peer.pid, peer.uid};
  return true;
}

// The socket knows its peer for certain; by number, the process could be another one by now.
UniqueFd peer_process(int socket, pid_t pid) {
  int fd = -1;
  socklen_t length = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) return UniqueFd(fd);
  if (pid <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace rocemu::daemon
