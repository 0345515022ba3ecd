// The NIC's side of verbs_shim/abi/mailbox.h: requests that need no system call. What is in the
// page is hostile: a request is copied out once, and nothing is ever read back.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/daemon/control/connection/received_message.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "verbs_shim/abi/mailbox.h"

namespace rocemu::daemon {

class MailboxServer {
 public:
  MailboxServer();  // throws std::system_error

  UniqueFd take_fd() { return memory_.take_fd(); }

  // Tells the program whether the NIC looks here by itself.
  void set_attended(bool attended);

  // Takes the request that the program has put in. False: there is none. A length that no request
  // can have makes an empty message.
  bool take(ReceivedMessage& message);
  // Answers the request that was taken. False: it is to be answered by the socket.
  bool answer(std::span<const std::byte> bytes, bool bears_descriptors);

 private:
  bool change(rocemu_mailbox_state from, rocemu_mailbox_state to);

  SharedMemory memory_;
  rocemu_mailbox& page_;
};

}  // namespace rocemu::daemon
