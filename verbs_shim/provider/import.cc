#include "verbs_shim/provider/import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "verbs_shim/provider/memory_region.h"
#include "verbs_shim/provider/new_object.h"
#include "verbs_shim/provider/protection_domain.h"
#include "verbs_shim/provider/verbs_ops.h"

namespace rocemu::provider {

int take_ticket(Context& context) {
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

int join_context(Context& context, const rocemu_context_ticket& ticket) {
  rocemu_join_context request = {};
  memcpy(request.token, ticket.token, sizeof(request.token));
  rocemu_handle_message reply;
  return context.call(ROCEMU_OP_JOIN_CONTEXT, request, reply);
}

ibv_pd* import_pd(ibv_context* context, uint32_t handle) {
  auto* domain = new_object<ProtectionDomain>();
  if (domain == nullptr) return nullptr;
  rocemu_handle_message request = {};
  request.handle = handle;
  rocemu_handle_message reply;
  const int error = to_context(context).call(ROCEMU_OP_IMPORT_PD, request, reply);
  if (error != 0) {
    delete_object(domain);
    errno = error;
    return nullptr;
  }
  domain->pd.context = context;
  domain->pd.handle = reply.handle;
  return &domain->pd;
}

// While queues of it are there the NIC keeps its name for it, until the context closes.
void unimport_pd(ibv_pd* pd) {
  rocemu_handle_message request = {};
  request.handle = pd->handle;
  rocemu_handle_message reply;
  to_context(pd->context).call(ROCEMU_OP_DEALLOC_PD, request, reply);
  delete_object(&to_domain(pd));
}

ibv_mr* import_mr(ibv_pd* pd, uint32_t handle) {
  rocemu_import_mr request = {};
  request.pd = pd->handle;
  request.mr = handle;
  rocemu_import_mr_reply reply;
  VerbsMr* mr = make_region(pd, ROCEMU_OP_IMPORT_MR, request, reply);
  if (mr == nullptr) return nullptr;
  mr->mr.length = reply.length_bytes;
  mr->mr.handle = handle;
  mr->type = kImportedMr;
  return &mr->mr;
}

void unimport_mr(ibv_mr* mr) { delete_object(reinterpret_cast<VerbsMr*>(mr)); }

}  // namespace rocemu::provider
