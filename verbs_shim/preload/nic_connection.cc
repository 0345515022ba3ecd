#include "verbs_shim/preload/nic_connection.h"

#include <errno.h>
#include <string.h>

#include "verbs_shim/exchange/mailbox_client.h"
#include "verbs_shim/exchange/message_socket.h"
#include "verbs_shim/exchange/nic_socket.h"
#include "verbs_shim/preload/hidden_descriptor.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

constinit HiddenDescriptor nic;
bool lost = false;
uint64_t cookie = 0;
exchange::MailboxClient mailbox;

// The first descriptor becomes `received`, the caller's, where the caller wants one: only the reply
// to HELLO comes with one.
bool receive_reply(rocemu_header* reply, size_t reply_bytes, size_t& got, int* received) {
  const auto on_fd = [&](int fd) {
    if (received != nullptr && *received < 0) {
      *received = fd;
    } else {
      real().close(fd);
    }
  };
  const exchange::Received message =
      exchange::receive_message(nic.number(), reply, reply_bytes, 0, on_fd);
  if (message.length_bytes < 0) return false;
  got = static_cast<size_t>(message.length_bytes);
  return true;
}

bool ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes, size_t& got,
         int sent, int* received) {
  using Outcome = exchange::MailboxClient::Outcome;
  Outcome outcome = Outcome::ask_by_socket;
  if (sent < 0) outcome = mailbox.ask(request, reply, reply_bytes, got);
  if (outcome == Outcome::answered) return true;
  const exchange::SentFds sent_fds = {&sent, sent >= 0 ? 1u : 0u};
  if (outcome == Outcome::ask_by_socket &&
      !exchange::send_message(nic.number(), request, request->length, sent_fds))
    return false;
  const bool answered = receive_reply(reply, reply_bytes, got, received);
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
  int fd = -1;
  int error = exchange::connect_to_nic(directory, {real().open, real().socket, real().close}, fd);
  if (error != 0) return error;
  nic.hold(fd);
  error = say_hello();
  if (error != 0) forget_nic_connection();
  return error;
}

}  // namespace

int call_nic(rocemu_header* request, rocemu_header* reply, size_t reply_bytes, int fd) {
  if (lost || (nic.number() >= 0 && !nic.is_there())) return EIO;
  if (nic.number() < 0) {
    if (const int error = connect_to_nic()) return error;
  }
  return exchange_messages(request, reply, reply_bytes, fd);
}

void forget_nic_connection() {
  nic.close();
  lost = false;
  mailbox.unmap();
}

}  // namespace rocemu::preload
