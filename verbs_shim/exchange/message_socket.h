// Messages with descriptors over an AF_UNIX SOCK_SEQPACKET socket (unix(7), cmsg(3)): the same code
// for rocemud, its clients and the libraries that are loaded into programs.
//
// It closes no descriptor and opens none, as the preload library must do so by the functions that
// it stands before. It calls sendmsg and recvmsg, which nobody stands before.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "verbs_shim/abi/control.h"

namespace rocemu::exchange {

inline constexpr size_t kFdControlBytes = CMSG_SPACE(ROCEMU_MESSAGE_MAX_FDS * sizeof(int));
// Room for as many descriptors as a message of the kernel can bear (SCM_MAX_FD). The kernel closes
// those that do not fit in recvmsg, for as long as that takes.
inline constexpr size_t kMaxFdControlBytes = CMSG_SPACE(253 * sizeof(int));

// The descriptors that go with a message; they stay the caller's.
struct SentFds {
  const int* fds = nullptr;
  size_t count = 0;  // at most ROCEMU_MESSAGE_MAX_FDS
};

// Sends a message whole or not at all, without SIGPIPE; `flags` are sendmsg's. False with errno
// when it was not sent.
inline bool send_message(int socket, const void* bytes, size_t length_bytes, SentFds sent = {},
                         int flags = 0) {
  iovec data = {const_cast<void*>(bytes), length_bytes};
  alignas(cmsghdr) char control[kFdControlBytes] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (sent.count > 0) {
    const size_t fd_bytes = sent.count * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fd_bytes);
    memcpy(CMSG_DATA(rights), sent.fds, fd_bytes);
  }
  ssize_t written;
  do {
    written = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(length_bytes);
}

struct Received {
  ssize_t length_bytes = -1;  // 0 when the peer has closed, below 0 with errno
  int flags = 0;              // recvmsg's: MSG_TRUNC, MSG_CTRUNC
};

// Receives one message into `buffer`; `flags` are recvmsg's. Each descriptor that came with it,
// close-on-exec, is handed to `on_fd(int)`, which owns it from then on. That may be more than
// ROCEMU_MESSAGE_MAX_FDS: all that came.
template <typename OnFd>
Received receive_message(int socket, void* buffer, size_t buffer_bytes, int flags, OnFd on_fd) {
  iovec data = {buffer, buffer_bytes};
  alignas(cmsghdr) char control[kMaxFdControlBytes];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t length_bytes;
  do {
    length_bytes = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (length_bytes < 0 && errno == EINTR);
  if (length_bytes < 0) return {};
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      on_fd(fd);
    }
  }
  return {length_bytes, message.msg_flags};
}

}  // namespace rocemu::exchange
