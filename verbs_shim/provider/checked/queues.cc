// CQs, QPs and SRQs: made, changed, destroyed.
#include <errno.h>

#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/checked/destroying.h"
#include "verbs_shim/provider/checked/extended.h"
#include "verbs_shim/provider/checked/staging.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/queues/queue_pair.h"
#include "verbs_shim/provider/queues/shared_receive_queue.h"

namespace rocemu::provider::checked {
namespace {

ibv_qp* told(rocemu_check_at at, ibv_context* context, ibv_qp* qp,
             const ibv_qp_init_attr_ex& asked) {
  if (qp == nullptr) {
    hooks->refused(at, ROCEMU_CHECK_QP, context, errno, &asked, 0);
    return nullptr;
  }
  QueuePair& queue = to_queue_pair(qp);
  const rocemu_check_qp made = {qp, &asked, &queue.cap};
  auto* record = queue.scaling == nullptr ? new_object<QueuePairRecord>() : nullptr;
  if (record == nullptr) return qp;
  record->shadow = hooks->qp_made(at, &made);
  queue.checked = record;
  return qp;
}

void* shadow_of(ibv_qp* qp) {
  QueuePairRecord* record = to_queue_pair(qp).checked;
  return record == nullptr ? nullptr : record->shadow;
}

ibv_srq* told(rocemu_check_at at, ibv_context* context, ibv_srq* srq,
              const ibv_srq_init_attr_ex& asked) {
  if (srq == nullptr) {
    hooks->refused(at, ROCEMU_CHECK_SRQ, context, errno, &asked, asked.attr.max_wr);
    return nullptr;
  }
  SharedReceiveQueue& queue = to_shared_queue(srq);
  queue.shadow = hooks->srq_made(at, srq, &asked, queue.max_wr, queue.max_sge);
  return srq;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_cq");
  ibv_cq* cq = provider::create_cq(context, cqe, channel, comp_vector);
  const auto asked = static_cast<uint32_t>(cqe);
  if (cq == nullptr) {
    hooks->refused(&at, ROCEMU_CHECK_CQ, context, errno, nullptr, asked);
  } else {
    to_queue(cq).shadow = hooks->cq_made(&at, cq, channel, asked, 0);
  }
  return cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_cq_ex");
  ibv_cq_ex* cq = provider::create_cq_ex(context, attr);
  if (cq == nullptr) {
    hooks->refused(&at, ROCEMU_CHECK_CQ, context, errno, nullptr, attr->cqe);
    return nullptr;
  }
  const bool deaf = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 &&
                    (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  CompletionQueue& queue = to_queue(cq);
  queue.shadow = hooks->cq_made(&at, &queue.verbs.cq, attr->channel, attr->cqe, deaf ? 1 : 0);
  check_poll_functions(*cq);
  return cq;
}

int resize_cq(ibv_cq* cq, int cqe) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_resize_cq");
  const int error = provider::resize_cq(cq, cqe);
  if (error == 0) hooks->cq_resized(&at, to_queue(cq).shadow, static_cast<uint32_t>(cq->cqe));
  return error;
}

int destroy_cq(ibv_cq* cq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_cq");
  return destroying(at, ROCEMU_CHECK_CQ, cq, [&] { return provider::destroy_cq(cq); });
}

// The checker is told of extended attributes, made of the plain ones as ibv_create_qp does.
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_qp");
  ibv_qp_init_attr_ex asked = {};
  asked.qp_context = attr->qp_context;
  asked.send_cq = attr->send_cq;
  asked.recv_cq = attr->recv_cq;
  asked.srq = attr->srq;
  asked.cap = attr->cap;
  asked.qp_type = attr->qp_type;
  asked.sq_sig_all = attr->sq_sig_all;
  asked.pd = pd;
  return told(&at, pd->context, provider::create_qp(pd, attr), asked);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_qp_ex");
  const ibv_qp_init_attr_ex asked = *attr;
  ibv_qp* qp = provider::create_qp_ex(context, attr);
  told(&at, context, qp, asked);
  const bool extended = (asked.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (qp != nullptr && extended && to_queue_pair(qp).checked != nullptr) {
    check_work_request_functions(to_queue_pair(qp).verbs.qp_ex, asked.send_ops_flags);
  }
  return qp;
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_modify_qp");
  void* shadow = shadow_of(qp);
  hooks->qp_modifying(&at, shadow, attr, mask);
  const int error = provider::modify_qp(qp, attr, mask);
  hooks->qp_modified(&at, shadow, attr, mask, error);
  return error;
}

int destroy_qp(ibv_qp* qp) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_qp");
  QueuePairRecord* record = to_queue_pair(qp).checked;
  const int error = destroying(at, ROCEMU_CHECK_QP, qp, [&] { return provider::destroy_qp(qp); });
  if (error == 0 && record != nullptr) delete_object(record);
  return error;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_srq");
  ibv_srq_init_attr_ex asked = {};
  asked.attr = attr->attr;
  asked.pd = pd;
  return told(&at, pd->context, provider::create_srq(pd, attr), asked);
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_create_srq_ex");
  const ibv_srq_init_attr_ex asked = *attr;
  return told(&at, context, provider::create_srq_ex(context, attr), asked);
}

int destroy_srq(ibv_srq* srq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_destroy_srq");
  return destroying(at, ROCEMU_CHECK_SRQ, srq, [&] { return provider::destroy_srq(srq); });
}

}  // namespace rocemu::provider::checked
