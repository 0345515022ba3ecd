// ibv_modify_qp, ibv_query_qp and what else says how a QP is to work: struct ibv_qp_attr to and
// fro.
#include <errno.h>
#include <string.h>

#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/queues/address_handle.h"
#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider {
namespace {

ibv_ah_attr from_wire(const rocemu_ah_attr& from) {
  ibv_ah_attr to = {};
  memcpy(to.grh.dgid.raw, from.dgid, sizeof(from.dgid));
  to.grh.flow_label = from.flow_label;
  to.grh.sgid_index = from.sgid_index;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.is_global = from.is_global;
  to.dlid = from.dlid;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.port_num = from.port_num;
  return to;
}

// Only what `mask` names: programs leave the rest uninitialised.
rocemu_qp_attr to_wire(const ibv_qp_attr& from, int mask) {
  const auto given = [mask](int flag) { return (mask & flag) != 0; };
  rocemu_qp_attr to = {};
  if (given(IBV_QP_STATE)) to.qp_state = from.qp_state;
  if (given(IBV_QP_CUR_STATE)) to.cur_qp_state = from.cur_qp_state;
  if (given(IBV_QP_EN_SQD_ASYNC_NOTIFY)) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if (given(IBV_QP_ACCESS_FLAGS)) to.qp_access_flags = from.qp_access_flags;
  if (given(IBV_QP_PKEY_INDEX)) to.pkey_index = from.pkey_index;
  if (given(IBV_QP_PORT)) to.port_num = from.port_num;
  if (given(IBV_QP_QKEY)) to.qkey = from.qkey;
  if (given(IBV_QP_AV)) to.ah = to_address_vector(from.ah_attr);
  if (given(IBV_QP_PATH_MTU)) to.path_mtu = from.path_mtu;
  if (given(IBV_QP_TIMEOUT)) to.timeout = from.timeout;
  if (given(IBV_QP_RETRY_CNT)) to.retry_cnt = from.retry_cnt;
  if (given(IBV_QP_RNR_RETRY)) to.rnr_retry = from.rnr_retry;
  if (given(IBV_QP_RQ_PSN)) to.rq_psn = from.rq_psn;
  if (given(IBV_QP_MAX_QP_RD_ATOMIC)) to.max_rd_atomic = from.max_rd_atomic;
  if (given(IBV_QP_ALT_PATH)) {
    to.alt_ah = to_address_vector(from.alt_ah_attr);
    to.alt_pkey_index = from.alt_pkey_index;
    to.alt_port_num = from.alt_port_num;
    to.alt_timeout = from.alt_timeout;
  }
  if (given(IBV_QP_MIN_RNR_TIMER)) to.min_rnr_timer = from.min_rnr_timer;
  if (given(IBV_QP_SQ_PSN)) to.sq_psn = from.sq_psn;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC)) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (given(IBV_QP_PATH_MIG_STATE)) to.path_mig_state = from.path_mig_state;
  if (given(IBV_QP_DEST_QPN)) to.dest_qp_num = from.dest_qp_num;
  if (given(IBV_QP_RATE_LIMIT)) to.rate_limit = from.rate_limit;
  return to;
}

void from_wire(const rocemu_qp_attr& from, ibv_qp_attr& to) {
  to.qp_state = static_cast<ibv_qp_state>(from.qp_state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
  to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to.path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qp_num;
  to.qp_access_flags = from.qp_access_flags;
  to.ah_attr = from_wire(from.ah);
  to.alt_ah_attr = from_wire(from.alt_ah);
  to.pkey_index = from.pkey_index;
  to.alt_pkey_index = from.alt_pkey_index;
  to.en_sqd_async_notify = from.en_sqd_async_notify;
  to.sq_draining = from.sq_draining;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port_num;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port_num;
  to.alt_timeout = from.alt_timeout;
  to.rate_limit = from.rate_limit;
}

bool moves_to_init(const ibv_qp_attr& attr, int mask) {
  return (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_INIT;
}

// librdmacm moves each QP to INIT twice. The second time changes nothing when it says the same: no
// QP leaves INIT by itself, and none but the receivers of XRC belong to several programs.
bool is_there_already(const QueuePair& queue, const rocemu_modify_qp& request) {
  const ibv_qp& qp = queue.verbs.qp;
  return qp.state == IBV_QPS_INIT && qp.qp_type != IBV_QPT_XRC_RECV &&
         request.attr_mask == static_cast<uint32_t>(queue.init.mask) &&
         memcmp(&request.attr, &queue.init.attr, sizeof(request.attr)) == 0;
}

int modify_in_nic(ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  QueuePair& queue = to_queue_pair(qp);
  rocemu_modify_qp request = {};
  request.qp = qp->handle;
  request.attr_mask = static_cast<uint32_t>(mask);
  request.attr = to_wire(attr, mask);
  if (mask != 0 && is_there_already(queue, request)) return 0;
  rocemu_handle_message reply;
  const int error = to_context(qp->context).call(ROCEMU_OP_MODIFY_QP, request, reply);
  if (error != 0) return error;
  qp->state = static_cast<ibv_qp_state>(reply.handle);
  queue.init.mask = moves_to_init(attr, mask) ? mask : 0;
  queue.init.attr = request.attr;
  return 0;
}

// The NIC empties both queues: nothing may be posted meanwhile. The locks are given back before a
// CQ's is taken, since a program may post in the middle of a batch (ibv_start_poll(3)), which holds
// that one.
int reset_in_nic(ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  QueuePair& queue = to_queue_pair(qp);
  Lock send_lock(queue.send_lock);
  Lock recv_lock(queue.recv_lock);
  return modify_in_nic(qp, attr, mask);
}

}  // namespace

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (to_queue_pair(qp).scaling != nullptr) return EOPNOTSUPP;  // as by mlx5
  if ((mask & IBV_QP_STATE) == 0 || attr->qp_state != IBV_QPS_RESET) {
    return modify_in_nic(qp, *attr, mask);
  }
  if (const int error = reset_in_nic(qp, *attr, mask); error != 0) return error;
  discard_completions(qp);
  return 0;
}

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  rocemu_limit_qp_rate request = {};
  request.qp = qp->handle;
  request.rate_kbps = attr->rate_limit;
  request.max_burst_bytes = attr->max_burst_sz;
  rocemu_handle_message reply;
  return to_context(qp->context).call(ROCEMU_OP_LIMIT_QP_RATE, request, reply);
}

// The NIC has no options for enhanced connection establishment: those of its own vendor come to
// nothing, those of others are refused, as by mlx5. Vendor 0, which stands for none, is for
// libibverbs to refuse (EOPNOTSUPP).
int query_ece(ibv_qp* qp, ibv_ece* ece) {
  *ece = {};
  ece->vendor_id = to_context(qp->context).state.limits.vendor_id;
  return 0;
}

int set_ece(ibv_qp* qp, ibv_ece* ece) {
  const uint32_t vendor = to_context(qp->context).state.limits.vendor_id;
  if (ece->comp_mask != 0 || ece->vendor_id != vendor) return EINVAL;
  ece->options = 0;
  return 0;
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const QueuePair& queue = to_queue_pair(qp);
  if (queue.scaling != nullptr) return EOPNOTSUPP;
  rocemu_handle_message request = {};
  request.handle = qp->handle;
  rocemu_query_qp_reply reply;
  if (const int error = to_context(qp->context).call(ROCEMU_OP_QUERY_QP, request, reply);
      error != 0) {
    return error;
  }
  from_wire(reply.attr, *attr);
  attr->cap = queue.cap;
  qp->state = attr->qp_state;
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->cap = queue.cap;
  init->qp_type = qp->qp_type;
  init->sq_sig_all = queue.signal_all ? 1 : 0;
  return 0;
}

}  // namespace rocemu::provider
