#include "verbs_shim/preload/nic_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs_shim/exchange/mailbox.h"
#include "verbs_shim/exchange/socket_address.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

int nic = -1;
bool lost = false;
uint64_t cookie = 0;
exchange::Mailbox mailbox;

bool send_message(const rocemu_header* request, int fd) {
  iovec data = {const_cast<rocemu_header*>(request), request->length};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  }
  ssize_t sent;
  do {
    sent = sendmsg(nic, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(request->length);
}

// Only the reply to HELLO comes with a descriptor: `received`, the caller's then.
bool receive_message(rocemu_header* reply, size_t reply_bytes, size_t& got, int* received) {
  iovec data = {reply, reply_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (received != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  ssize_t bytes;
  do {
    bytes = recvmsg(nic, &message, MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return false;
  const cmsghdr* rights = received != nullptr ? CMSG_FIRSTHDR(&message) : nullptr;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int)))
    memcpy(received, CMSG_DATA(rights), sizeof(*received));
  got = static_cast<size_t>(bytes);
  return true;
}

bool ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes, size_t& got,
         int sent, int* received) {
  using Outcome = exchange::Mailbox::Outcome;
  Outcome outcome = Outcome::ask_by_socket;
  if (sent < 0) outcome = mailbox.ask(request, reply, reply_bytes, got);
  if (outcome == Outcome::answered) return true;
  if (outcome == Outcome::ask_by_socket && !send_message(request, sent)) return false;
  const bool answered = receive_message(reply, reply_bytes, got, received);
  mailbox.settle();
  return answered;
}

int exchange_messages(rocemu_header* request, rocemu_header* reply, size_t reply_bytes, int fd,
                      int* received = nullptr) {
  request->cookie = ++cookie;
  request->status = 0;
  request->reserved = 0;
  memset(static_cast<void*>(reply), 0, reply_bytes);
  size_t got = 0;
  const bool answered = ask(request, reply, reply_bytes, got, fd, received) &&
                        got >= sizeof(*reply) && reply->length == got && reply->op == request->op &&
                        reply->cookie == request->cookie && reply->status >= 0 &&
                        (got == reply_bytes || reply->status != 0);
  if (!answered) {
    lost = true;
    return EIO;
  }
  return reply->status;
}

int say_hello() {
  rocemu_hello hello = {};
  hello.header.op = ROCEMU_OP_HELLO;
  hello.header.length = sizeof(hello);
  hello.magic = ROCEMU_ABI_MAGIC;
  hello.abi_version = ROCEMU_ABI_VERSION;
  hello.device_index = ROCEMU_CM_SERVICE;
  rocemu_hello_reply reply;
  int page = -1;
  const int error = exchange_messages(&hello.header, &reply.header, sizeof(reply), -1, &page);
  if (page >= 0) {
    if (error == 0) mailbox.map(page);
    real().close(page);
  }
  return error;
}

int connect_to_nic() {
  char directory[PATH_MAX];
  const size_t length = sysfs_tree_length() - sizeof("/" ROCEMU_SYSFS_NAME) + 1;
  memcpy(directory, sysfs_tree(), length);
  directory[length] = '\0';
  const int directory_fd = real().open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) return errno;
  int error = 0;
  sockaddr_un address = {};
  const int fd = real().socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    error = errno;
  } else if (!exchange::socket_address(directory, directory_fd, address)) {
    error = ENAMETOOLONG;
  } else if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  real().close(directory_fd);
  if (error == 0) {
    nic = fd;
    lost = false;
    error = say_hello();
  }
  if (error != 0) {
    nic = -1;
    if (fd >= 0) real().close(fd);
  }
  return error;
}

}  // namespace

int call_nic(rocemu_header* request, rocemu_header* reply, size_t reply_bytes, int fd) {
  if (nic < 0) {
    if (const int error = connect_to_nic()) return error;
  }
  if (lost) return EIO;
  return exchange_messages(request, reply, reply_bytes, fd);
}

void forget_nic_connection() {
  if (nic >= 0) real().close(nic);
  nic = -1;
  mailbox.unmap();
}

}  // namespace rocemu::preload
