#include "emulator/daemon/control/message_socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace rocemu::daemon {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(ROCEMU_MESSAGE_MAX_FDS * sizeof(int));

// Every descriptor that came is owned from here on, also those past the ones a message may have
// (alignment of the control buffer can leave room for one more).
bool take_fds(msghdr& header, ReceivedMessage& message) {
  bool fits = true;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (message.fd_count == message.fds.size()) {
        fits = false;
        continue;
      }
      message.fds[message.fd_count++] = std::move(owned);
    }
  }
  return fits;
}

}  // namespace

ReceiveResult receive_message(int socket, ReceivedMessage& message) {
  message.length_bytes = 0;
  message.close_fds();

  alignas(cmsghdr) char control[kControlBytes];
  iovec data{message.buffer.data(), message.buffer.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t length;
  do length = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (length < 0 && errno == EINTR);
  if (length < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? ReceiveResult::nothing : ReceiveResult::ended;

  const bool all_fds = take_fds(header, message);
  if (!all_fds || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return ReceiveResult::truncated;
  if (length == 0) return ReceiveResult::ended;
  message.length_bytes = static_cast<size_t>(length);
  return ReceiveResult::message;
}

SendResult send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  alignas(cmsghdr) char control[kControlBytes] = {};
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do sent = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return SendResult::sent;
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
