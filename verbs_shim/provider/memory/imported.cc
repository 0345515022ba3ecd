// Protection domains and regions of another process, which has them on an imported context.
#include <errno.h>

#include "verbs_shim/abi/import.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/protection_domain.h"
#include "verbs_shim/provider/memory/memory_region.h"

namespace rocemu::provider {

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
  // QPs over tables that are there still count it.
  if (to_domain(pd).users.load() == 0) delete_object(&to_domain(pd));
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
