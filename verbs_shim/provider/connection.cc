#include "verbs_shim/provider/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs_shim/exchange/socket_address.h"

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

int Connection::open(const char* directory) {
  const int directory_fd = ::open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) return errno;
  int error = 0;
  sockaddr_un address = {};
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    error = errno;
  } else if (!exchange::socket_address(directory, directory_fd, address)) {
    error = ENAMETOOLONG;
  } else if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  ::close(directory_fd);
  if (error == 0) error = turn_.open();
  if (error != 0) close();
  owner_process_ = getpid();
  return error;
}

void Connection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  mailbox_.unmap();
  turn_.close();
}

void Connection::use_mailbox(int fd) {
  if (fd >= 0) mailbox_.map(fd);
}

pid_t Connection::peer_process() const {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return 0;
  return peer.pid;
}

void Connection::look() {
  char byte;
  const ssize_t got = recv(fd_, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) lost_.store(true, std::memory_order_relaxed);
}

int Connection::exchange(rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
                         ReceivedFds* received, SentFds sent) {
  if (fd_ < 0) return EIO;
  Turn turn(turn_);
  if (lost()) return EIO;
  request->cookie = turn_.next_cookie();
  request->status = 0;
  request->reserved = 0;
  size_t got = 0;
  const int errno_before = errno;
  errno = 0;
  const bool answered = ask(request, reply, reply_bytes, received, sent, got) &&
                        reply->cookie == request->cookie && reply->length == got &&
                        reply->op == request->op && reply->status >= 0 &&
                        (got == reply_bytes || reply->status != 0);
  // A descriptor of the program's that it has closed meanwhile: nothing was asked.
  const bool unsent = !answered && errno == EBADF && sent.count > 0 && fcntl(fd_, F_GETFD) >= 0;
  errno = errno_before;
  if (unsent) return EBADF;
  if (!answered) {
    lost_.store(true, std::memory_order_relaxed);
    shutdown(fd_, SHUT_RDWR);
    return EIO;
  }
  return reply->status;
}

bool Connection::ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
                     ReceivedFds* received, SentFds sent, size_t& got) {
  using Outcome = exchange::Mailbox::Outcome;
  Outcome outcome = Outcome::ask_by_socket;
  if (sent.count == 0) {
    memset(static_cast<void*>(reply), 0, reply_bytes);
    outcome = mailbox_.ask(request, reply, reply_bytes, got);
  } else {
    mailbox_.withdraw();
  }
  if (outcome == Outcome::answered) return true;
  if (outcome == Outcome::ask_by_socket && !send(request, sent)) return false;
  const bool answered = receive_answer(request->cookie, reply, reply_bytes, received, got);
  mailbox_.settle();
  return answered;
}

bool Connection::send(const rocemu_header* request, SentFds sent) {
  iovec data = {const_cast<rocemu_header*>(request), request->length};
  alignas(cmsghdr) char control[CMSG_SPACE(ROCEMU_MESSAGE_MAX_FDS * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (sent.count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sent.count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sent.count * sizeof(int));
    memcpy(CMSG_DATA(rights), sent.fds, sent.count * sizeof(int));
  }
  ssize_t written;
  do {
    written = sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(request->length);
}

// Answers to a process that has died since it asked are passed over.
bool Connection::receive_answer(uint64_t cookie, rocemu_header* reply, size_t reply_bytes,
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

bool Connection::is_owner() const { return getpid() == owner_process_; }

bool Connection::receive(rocemu_header* reply, size_t reply_bytes, ReceivedFds& received,
                         size_t& got) {
  iovec data = {reply, reply_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(ROCEMU_MESSAGE_MAX_FDS * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t bytes;
  do {
    // The length as it was sent, whatever there is room for.
    bytes = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      received.add(fd);
    }
  }
  got = static_cast<size_t>(bytes);
  return (message.msg_flags & MSG_CTRUNC) == 0;
}

}  // namespace rocemu::provider
