// ibv_open_xrcd and ibv_open_qp: what processes share.
#include "verbs_shim/provider/queues/xrc_domain.h"

#include <errno.h>
#include <fcntl.h>

#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider {
namespace {

int open_in_nic(ibv_context* context, const ibv_xrcd_init_attr& attr, XrcDomain& domain) {
  constexpr uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr.comp_mask & kNeeded) != kNeeded) return EINVAL;
  if ((attr.comp_mask & ~kNeeded) != 0) return EOPNOTSUPP;
  if ((attr.oflags & ~(O_CREAT | O_EXCL)) != 0) return EINVAL;
  rocemu_open_xrcd request = {};
  if ((attr.oflags & O_CREAT) != 0) request.flags |= ROCEMU_XRCD_CREATE;
  if ((attr.oflags & O_EXCL) != 0) request.flags |= ROCEMU_XRCD_EXCLUSIVE;
  // A bad descriptor could not be sent.
  if (attr.fd != -1 && fcntl(attr.fd, F_GETFD) < 0) return EBADF;
  const SentFds file = {&attr.fd, attr.fd != -1 ? 1u : 0u};
  rocemu_handle_message reply;
  const int error = to_context(context).call(ROCEMU_OP_OPEN_XRCD, request, reply, nullptr, file);
  domain.handle = reply.handle;
  return error;
}

int open_in_nic(ibv_context* context, const ibv_qp_open_attr& attr, ibv_qp& qp) {
  constexpr uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr.comp_mask & kNeeded) != kNeeded || attr.qp_type != IBV_QPT_XRC_RECV) return EINVAL;
  if ((attr.comp_mask & ~(kNeeded | IBV_QP_OPEN_ATTR_CONTEXT)) != 0) return EOPNOTSUPP;
  rocemu_open_qp request = {};
  request.xrcd = to_domain(attr.xrcd).handle;
  request.qp_num = attr.qp_num;
  request.user_pointer = reinterpret_cast<uintptr_t>(&qp);
  rocemu_handle_message reply;
  const int error = to_context(context).call(ROCEMU_OP_OPEN_QP, request, reply);
  qp.handle = reply.handle;
  return error;
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  auto* domain = new_object<XrcDomain>();
  if (domain == nullptr) return nullptr;
  if (const int error = open_in_nic(context, *attr, *domain); error != 0) {
    delete_object(domain);
    errno = error;
    return nullptr;
  }
  domain->xrcd.context = context;
  return &domain->xrcd;
}

int close_xrcd(ibv_xrcd* xrcd) {
  rocemu_handle_message request = {};
  request.handle = to_domain(xrcd).handle;
  rocemu_handle_message reply;
  const int error = to_context(xrcd->context).call(ROCEMU_OP_CLOSE_XRCD, request, reply);
  if (error == 0) delete_object(&to_domain(xrcd));
  return error;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  auto* queue = new_object<QueuePair>();
  if (queue == nullptr) return nullptr;
  ibv_qp& qp = queue->verbs.qp;
  if (const int error = open_in_nic(context, *attr, qp); error != 0) {
    delete_object(queue);
    errno = error;
    return nullptr;
  }
  qp.context = context;
  qp.qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
  qp.qp_num = attr->qp_num;
  qp.qp_type = IBV_QPT_XRC_RECV;
  qp.state = IBV_QPS_UNKNOWN;  // others move it
  pthread_mutex_init(&qp.mutex, nullptr);
  pthread_cond_init(&qp.cond, nullptr);
  return &qp;
}

}  // namespace rocemu::provider
