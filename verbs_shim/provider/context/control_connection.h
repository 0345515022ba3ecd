// The control connection of one context: requests and replies as verbs_shim/abi/control.h has them,
// one at a time.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <atomic>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/exchange/mailbox_client.h"
#include "verbs_shim/exchange/message_socket.h"
#include "verbs_shim/provider/common/shared_turn.h"

namespace rocemu::provider {

// Descriptors that came with a reply; those not taken are closed.
class ReceivedFds {
 public:
  ReceivedFds() = default;
  ReceivedFds(const ReceivedFds&) = delete;
  ReceivedFds& operator=(const ReceivedFds&) = delete;
  ~ReceivedFds();

  void add(int fd);
  // The descriptor, now the caller's, or -1 when the reply had fewer.
  int take(unsigned index);
  int get(unsigned index) const { return index < count_ ? fds_[index] : -1; }

 private:
  int fds_[ROCEMU_MESSAGE_MAX_FDS] = {-1, -1, -1, -1};
  unsigned count_ = 0;
};

using exchange::SentFds;

class ControlConnection {
 public:
  // Connects to the NIC of a state directory; 0 or connect(2)'s errno.
  int open(const char* directory);
  void close();

  // The process at the other end, as this process's namespace numbers it; 0 when it can't tell.
  pid_t peer_process() const;

  // Sends `request`, whose header is filled in here, and waits for the reply. 0, the errno that the
  // reply carries, or EIO when the NIC is gone. A reply with a status leaves the body of `reply`
  // zero, unless one came. Forked children may call, too; what the NIC does is done for the process
  // that connected, whose memory it reaches.
  template <typename Request, typename Reply>
  int call(uint32_t op, Request& request, Reply& reply, ReceivedFds* received = nullptr,
           SentFds sent = {}) {
    static_assert(sizeof(Request) <= ROCEMU_MESSAGE_MAX && sizeof(Reply) <= ROCEMU_MESSAGE_MAX);
    request.header.op = op;
    request.header.length = sizeof(Request);
    return exchange(&request.header, &reply.header, sizeof(Reply), received, sent);
  }

  // The same for a caller that does not know the operation: `request` begins with its header, as
  // `reply` does.
  int call_unknown(uint32_t op, rocemu_header* request, size_t request_bytes, rocemu_header* reply,
                   size_t reply_bytes) {
    if (request_bytes > ROCEMU_MESSAGE_MAX || reply_bytes > ROCEMU_MESSAGE_MAX) return EINVAL;
    request->op = op;
    request->length = static_cast<uint32_t>(request_bytes);
    return exchange(request, reply, reply_bytes, nullptr, {});
  }

  // A page of the NIC that requests may go by from now on; `fd` stays the caller's. Without one, or
  // with -1, all go by the socket.
  void use_mailbox(int fd);

  // True in the process that connected.
  bool is_owner() const;

  // True when the NIC has gone away, as far as calls and look() know.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  // Finds out whether it has, without waiting.
  void look();

 private:
  int exchange(rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
               ReceivedFds* received, SentFds sent);
  bool ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes,
           ReceivedFds* received, SentFds sent, size_t& got);
  bool receive_answer(uint64_t cookie, rocemu_header* reply, size_t reply_bytes,
                      ReceivedFds* received, size_t& got);
  // One message. `got` is its length, of which `reply_bytes` at most are kept.
  bool receive(rocemu_header* reply, size_t reply_bytes, ReceivedFds& received, size_t& got);
  void spend_spare();

  int fd_ = -1;
  // Holds a place for a descriptor that is to come; -1 when none is. By the turn.
  int spare_ = -1;
  pid_t owner_process_ = 0;
  std::atomic<bool> lost_{false};
  SharedTurn turn_;
  exchange::MailboxClient mailbox_;
};

}  // namespace rocemu::provider
