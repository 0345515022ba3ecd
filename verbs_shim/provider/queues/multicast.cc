#include <string.h>

#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {
namespace {

// The LID is InfiniBand's; Ethernet has none.
int change(rocemu_op op, ibv_qp* qp, const ibv_gid& group) {
  rocemu_mcast request = {};
  request.qp = qp->handle;
  memcpy(request.gid, group.raw, sizeof(request.gid));
  rocemu_handle_message reply;
  return to_context(qp->context).call(op, request, reply);
}

}  // namespace

int attach_mcast(ibv_qp* qp, const ibv_gid* group, uint16_t) {
  return change(ROCEMU_OP_ATTACH_MCAST, qp, *group);
}

int detach_mcast(ibv_qp* qp, const ibv_gid* group, uint16_t) {
  return change(ROCEMU_OP_DETACH_MCAST, qp, *group);
}

}  // namespace rocemu::provider
