#include "verbs_shim/provider/context/control_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_shim/exchange/message_socket.h"
#include "verbs_shim/exchange/nic_socket.h"

namespace rocemu::provider {
namespace {

// A thread cancelled between a request and its reply would leave the mutex locked and the reply to
// the next call.
class Turn {
 public:
  explicit Turn(SharedTurn& turn) : turn_(turn) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
    turn_.begin();
  }
  ~Turn() {
    turn_.end();
    pthread_setcancelstate(before_, nullptr);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  SharedTurn& turn_;
  int before_ = 0;
};

}  // namespace

ReceivedFds::~ReceivedFds() {
  for (int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
}

void ReceivedFds::add(int fd) {
  if (count_ < ROCEMU_MESSAGE_MAX_FDS) {
    fds_[count_++] = fd;
  } else {
    ::close(fd);
  }
}

int ReceivedFds::take(unsigned index) {
  if (index >= count_) return -1;
  const int fd = fds_[index];
  fds_[index] = -1;
  return fd;
}

int ControlConnection::open(const char* directory) {
  int error = exchange::connect_to_nic(directory, {::open, ::socket, ::close}, fd_);
  if (error == 0) error = turn_.open();
  if (error != 0) close();
  owner_process_ = getpid();
  return error;
}

void ControlConnection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  mailbox_.unmap();
  turn_.close();
}

void ControlConnection::use_mailbox(int fd) {
  if (fd >= 0) mailbox_.map(fd);
}

pid_t ControlConnection::peer_process() const {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return 0;
  return peer.pid;
}

void ControlConnection::look() {
  const int errno_before = errno;
  char byte;
  const ssize_t got = recv(fd_, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) lost_.store(true, std::memory_order_relaxed);
  errno = errno_before;
}

int ControlConnection::exchange(rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
                                ReceivedFds* received, SentFds sent) {
  if (fd_ < 0) return EIO;
  Turn turn(turn_);
  if (lost()) return EIO;
  request->cookie = turn_.next_cookie();
  request->status = 0;
  request->reserved = 0;
  size_t got = 0;
  const int errno_before = errno;
  // Who has no descriptor left is told before the NIC makes what it cannot be given.
  if (received != nullptr && (spare_ = fcntl(fd_, F_DUPFD_CLOEXEC, 0)) < 0) {
    const int error = errno;
    errno = errno_before;
    return error;
  }
  errno = 0;
  const bool answered = ask(request, reply, reply_bytes, received, sent, got) &&
                        reply->cookie == request->cookie && reply->length == got &&
                        reply->op == request->op && reply->status >= 0 &&
                        (got == reply_bytes || reply->status != 0);
  // A descriptor of the program's that it has closed meanwhile: nothing was asked.
  const bool unsent = !answered && errno == EBADF && sent.count > 0 && fcntl(fd_, F_GETFD) >= 0;
  spend_spare();
  errno = errno_before;
  if (unsent) return EBADF;
  if (!answered) {
    lost_.store(true, std::memory_order_relaxed);
    shutdown(fd_, SHUT_RDWR);
    return EIO;
  }
  return reply->status;
}

bool ControlConnection::ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
                            ReceivedFds* received, SentFds sent, size_t& got) {
  using Outcome = exchange::MailboxClient::Outcome;
  Outcome outcome = Outcome::ask_by_socket;
  if (sent.count == 0) {
    memset(static_cast<void*>(reply), 0, reply_bytes);
    outcome = mailbox_.ask(request, reply, reply_bytes, got);
  } else {
    mailbox_.withdraw();
  }
  if (outcome == Outcome::answered) return true;
  if (outcome == Outcome::ask_by_socket &&
      !exchange::send_message(fd_, request, request->length, sent))
    return false;
  const bool answered = receive_answer(request->cookie, reply, reply_bytes, received, got);
  mailbox_.settle();
  return answered;
}

// Answers to a process that has died since it asked are passed over.
bool ControlConnection::receive_answer(uint64_t cookie, rocemu_header* reply, size_t reply_bytes,
                                       ReceivedFds* received, size_t& got) {
  while (true) {
    ReceivedFds fds;
    memset(static_cast<void*>(reply), 0, reply_bytes);
    if (!receive(reply, reply_bytes, fds, got) || got < sizeof(*reply)) return false;
    if (reply->cookie > cookie) return false;
    if (reply->cookie < cookie) continue;
    if (got > reply_bytes) return false;
    for (unsigned i = 0; received != nullptr && i < ROCEMU_MESSAGE_MAX_FDS; ++i) {
      const int fd = fds.take(i);
      if (fd >= 0) received->add(fd);
    }
    return true;
  }
}

bool ControlConnection::is_owner() const { return getpid() == owner_process_; }

void ControlConnection::spend_spare() {
  if (spare_ >= 0) ::close(spare_);
  spare_ = -1;
}

bool ControlConnection::receive(rocemu_header* reply, size_t reply_bytes, ReceivedFds& received,
                                size_t& got) {
  spend_spare();
  // With MSG_TRUNC the length is the one that was sent, whatever there is room for.
  const exchange::Received message = exchange::receive_message(fd_, reply, reply_bytes, MSG_TRUNC,
                                                               [&](int fd) { received.add(fd); });
  // A descriptor for which there is no room (MSG_CTRUNC) is missed by who takes it.
  if (message.length_bytes <= 0) return false;
  got = static_cast<size_t>(message.length_bytes);
  return true;
}

}  // namespace rocemu::provider
