#include "verbs_shim/provider/context/ticket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace rocemu::provider {

int take_ticket(DeviceContext& context) {
  rocemu_handle_message request = {};
  rocemu_handle_message reply;
  ReceivedFds received;
  const int error = context.call(ROCEMU_OP_CONTEXT_TICKET, request, reply, &received);
  if (error != 0) return error;
  return dup3(received.get(0), context.verbs.cmd_fd, O_CLOEXEC) < 0 ? errno : 0;
}

bool read_ticket(int fd, rocemu_context_ticket& ticket) {
  return pread(fd, &ticket, sizeof(ticket), 0) == static_cast<ssize_t>(sizeof(ticket)) &&
         memcmp(ticket.magic, ROCEMU_TICKET_MAGIC, sizeof(ticket.magic)) == 0 &&
         ticket.abi_version == ROCEMU_ABI_VERSION;
}

int join_context(DeviceContext& context, const rocemu_context_ticket& ticket) {
  rocemu_join_context request = {};
  memcpy(request.token, ticket.token, sizeof(request.token));
  rocemu_handle_message reply;
  return context.call(ROCEMU_OP_JOIN_CONTEXT, request, reply);
}

}  // namespace rocemu::provider
