// The program's side of verbs_shim/abi/mailbox.h. To be used in one's turn on the connection only.
#pragma once

#include <stddef.h>

#include "verbs_shim/abi/mailbox.h"
#include "verbs_shim/exchange/shared_memory.h"

namespace rocemu::exchange {

class MailboxClient {
 public:
  enum class Outcome {
    answered,
    reply_by_socket,  // asked; settle() after the reply has come
    ask_by_socket,    // not asked; settle() after the reply has come
  };

  // Maps the page of `fd`, which stays the caller's. 0 or an errno. Without a page, or in a page of
  // a NIC that does not look, everything is to be asked by the socket.
  int map(int fd);
  void unmap();

  // Fills in `reply` up to `reply_bytes`; `got` is the length that it was sent with.
  Outcome ask(const rocemu_header* request, rocemu_header* reply, size_t reply_bytes, size_t& got);
  // Takes back whatever a process that died in its turn may have left. To be called before a
  // request that is not asked here.
  void withdraw();
  void settle();

 private:
  Outcome wait(rocemu_header* reply, size_t reply_bytes, size_t& got);

  SharedMemory memory_;
  rocemu_mailbox* page_ = nullptr;  // its content
  unsigned calls_to_skip_ = 0;      // after the NIC has let one wait in vain
};

}  // namespace rocemu::exchange
