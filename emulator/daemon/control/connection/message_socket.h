// Messages with descriptors over one AF_UNIX SOCK_SEQPACKET connection (unix(7), cmsg(3)). Never
// blocks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "base/unique_fd.h"
#include "emulator/daemon/control/connection/received_message.h"

namespace rocemu::daemon {

enum class ReceiveResult {
  message,
  nothing,    // there is none now
  ended,      // the peer closed, or the connection broke
  truncated,  // more bytes or descriptors than a message may have
};

// Descriptors are close-on-exec and owned by `message`; what does not fit has been closed.
ReceiveResult receive_message(int socket, ReceivedMessage& message);

enum class SendResult { sent, full, ended };

// Sends a message whole or not at all. The descriptors stay the caller's.
SendResult send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct PeerCredentials {
  pid_t pid = 0;  // 0 when it is not visible from here
  uid_t uid = 0;
};

// Finds who has connected (SO_PEERCRED). False when the kernel does not say.
bool peer_credentials(int socket, PeerCredentials& credentials);

// A descriptor that becomes readable when that process ends; empty when there is none to be had.
UniqueFd peer_process(int socket, pid_t pid);

}  // namespace rocemu::daemon
