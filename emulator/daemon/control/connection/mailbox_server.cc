#include "emulator/daemon/control/connection/mailbox_server.h"

#include <cstring>

#include "emulator/daemon/rings/shared_words.h"

namespace rocemu::daemon {

MailboxServer::MailboxServer()
    : memory_("rocemu-mailbox", sizeof(rocemu_mailbox)),
      page_(*reinterpret_cast<rocemu_mailbox*>(memory_.data())) {}

void MailboxServer::set_attended(bool attended) { store_release(page_.attended, attended ? 1 : 0); }

bool MailboxServer::take(ReceivedMessage& message) {
  if (load_acquire(page_.state) != ROCEMU_MAILBOX_ASKED ||
      !change(ROCEMU_MAILBOX_ASKED, ROCEMU_MAILBOX_TAKEN))
    return false;
  rocemu_header header;
  copy_out(header, reinterpret_cast<const std::byte*>(page_.request));
  message.close_fds();
  message.length_bytes = 0;
  if (header.length < sizeof(header) || header.length > ROCEMU_MAILBOX_BYTES) return true;
  message.length_bytes = header.length;
  std::memcpy(message.buffer.data(), page_.request, message.length_bytes);
  std::memcpy(message.buffer.data(), &header, sizeof(header));
  return true;
}

bool MailboxServer::answer(std::span<const std::byte> bytes, bool bears_descriptors) {
  if (bears_descriptors || bytes.size() > ROCEMU_MAILBOX_BYTES) {
    change(ROCEMU_MAILBOX_TAKEN, ROCEMU_MAILBOX_ELSEWHERE);
    return false;
  }
  std::memcpy(page_.reply, bytes.data(), bytes.size());
  return change(ROCEMU_MAILBOX_TAKEN, ROCEMU_MAILBOX_ANSWERED);
}

bool MailboxServer::change(rocemu_mailbox_state from, rocemu_mailbox_state to) {
  uint32_t expected = from;
  return __atomic_compare_exchange_n(&page_.state, &expected, uint32_t{to}, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE);
}

}  // namespace rocemu::daemon
