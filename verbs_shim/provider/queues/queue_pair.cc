#include "verbs_shim/provider/queues/queue_pair.h"

#include <errno.h>

#include <initializer_list>

#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/acknowledge.h"
#include "verbs_shim/provider/queues/completion_queue.h"
#include "verbs_shim/provider/queues/work_queue.h"
#include "verbs_shim/provider/queues/xrc_domain.h"

namespace rocemu::provider {
namespace {

bool is_ring(uint32_t entries, uint32_t stride, uint64_t offset, uint64_t least_stride,
             uint64_t memory_bytes) {
  if (entries == 0) return true;
  return entries <= kMaxEntries && stride % 64 == 0 && stride >= least_stride &&
         offset >= sizeof(rocemu_queue_header) && offset % 64 == 0 && offset <= memory_bytes &&
         uint64_t{ring_slots(entries)} * stride <= memory_bytes - offset;
}

bool is_queue_pair(const rocemu_create_qp_reply& reply, uint32_t max_tso_header,
                   const Doorbells& doorbells) {
  const uint64_t sges = uint64_t{reply.max_send_sge} * sizeof(struct rocemu_sge) + max_tso_header;
  const uint64_t payload = sges > reply.max_inline_data ? sges : reply.max_inline_data;
  const uint64_t send_stride = sizeof(struct rocemu_send_wqe) + payload;
  const uint64_t recv_stride =
      sizeof(struct rocemu_recv_wqe) + uint64_t{reply.max_recv_sge} * sizeof(struct rocemu_sge);
  return reply.doorbell < doorbells.slots && reply.memory_bytes >= sizeof(rocemu_queue_header) &&
         is_ring(reply.sq_entries, reply.sq_stride_bytes, reply.sq_offset_bytes, send_stride,
                 reply.memory_bytes) &&
         is_ring(reply.rq_entries, reply.rq_stride_bytes, reply.rq_offset_bytes, recv_stride,
                 reply.memory_bytes);
}

int destroy_in_nic(DeviceContext& context, uint32_t handle, rocemu_destroy_events_reply& reply) {
  rocemu_handle_message request = {};
  request.handle = handle;
  return context.call(ROCEMU_OP_DESTROY_QP, request, reply);
}

void attach(QueuePair& queue, const rocemu_create_qp_reply& reply) {
  auto* base = static_cast<uint8_t*>(queue.memory.address());
  auto* header = reinterpret_cast<rocemu_queue_header*>(base);
  queue.header = header;
  queue.send_ring.attach(&header->sq_producer, &header->sq_consumer, base + reply.sq_offset_bytes,
                         reply.sq_entries, reply.sq_stride_bytes, &header->stamps_posts);
  queue.recv_ring.attach(&header->rq_producer, &header->rq_consumer, base + reply.rq_offset_bytes,
                         reply.rq_entries, reply.rq_stride_bytes, &header->stamps_posts);
  queue.doorbell = reply.doorbell;
  queue.cap.max_send_wr = reply.sq_entries;
  queue.cap.max_recv_wr = reply.rq_entries;
  queue.cap.max_send_sge = reply.max_send_sge;
  queue.cap.max_recv_sge = reply.max_recv_sge;
  queue.cap.max_inline_data = reply.max_inline_data;
}

int create_in_nic(DeviceContext& context, QueuePair& queue, const ibv_qp_init_attr_ex& attr) {
  rocemu_create_qp request = {};
  if (queue.verbs.qp.pd != nullptr) request.pd = queue.verbs.qp.pd->handle;
  if (attr.send_cq != nullptr) request.send_cq = attr.send_cq->handle;
  if (attr.recv_cq != nullptr) request.recv_cq = attr.recv_cq->handle;
  // 0 would be none.
  if (attr.srq != nullptr && attr.srq->handle == 0) return ENOENT;
  if (attr.srq != nullptr) request.srq = attr.srq->handle;
  if (attr.qp_type == IBV_QPT_XRC_RECV) request.xrcd = to_domain(attr.xrcd).handle;
  request.qp_type = attr.qp_type;
  request.max_send_wr = attr.cap.max_send_wr;
  request.max_recv_wr = attr.cap.max_recv_wr;
  request.max_send_sge = attr.cap.max_send_sge;
  request.max_recv_sge = attr.cap.max_recv_sge;
  request.max_inline_data = attr.cap.max_inline_data;
  request.max_tso_header = queue.max_tso_header;
  request.sq_sig_all = attr.sq_sig_all != 0 ? 1 : 0;
  request.user_pointer = reinterpret_cast<uintptr_t>(&queue.verbs.qp);
  rocemu_create_qp_reply reply;
  ReceivedFds received;
  int error = context.call(ROCEMU_OP_CREATE_QP, request, reply, &received);
  if (error != 0) return error;
  error = is_queue_pair(reply, request.max_tso_header, context.state.doorbells)
              ? queue.memory.map(queue.verbs.qp.pd, QueueResource::kQueuePair, received.get(0),
                                 reply.memory_bytes)
              : EPROTO;
  if (error != 0) {
    rocemu_destroy_events_reply ignored;
    destroy_in_nic(context, reply.qp, ignored);
    return error;
  }
  attach(queue, reply);
  queue.verbs.qp.handle = reply.qp;
  queue.verbs.qp.qp_num = reply.qp_num;
  return 0;
}

void fill(ibv_qp& qp, ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  qp.context = context;
  qp.qp_context = attr.qp_context;
  qp.pd = (attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr.pd : nullptr;
  qp.send_cq = attr.send_cq;
  qp.recv_cq = attr.recv_cq;
  qp.srq = attr.srq;
  qp.state = IBV_QPS_RESET;
  qp.qp_type = attr.qp_type;
  qp.events_completed = 0;
  pthread_mutex_init(&qp.mutex, nullptr);
  pthread_cond_init(&qp.cond, nullptr);
}

uint32_t tso_header_of(const ibv_qp_init_attr_ex& attr) {
  return (attr.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 ? attr.max_tso_header : 0;
}

// Refuses what the provider can't bring to the NIC, as creation flags. Demands what a type of QP
// needs, so that nothing is looked for where the program has put nothing.
int check_attributes(const ibv_qp_init_attr_ex& attr) {
  constexpr unsigned kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                              IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                              IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  if ((attr.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
  if (tso_header_of(attr) != 0 && attr.qp_type != IBV_QPT_RAW_PACKET) return EOPNOTSUPP;
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr.create_flags != 0) {
    return EOPNOTSUPP;
  }
  const bool has_pd = (attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attr.pd != nullptr;
  const bool has_xrcd = (attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attr.xrcd != nullptr;
  switch (attr.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
      return has_pd && attr.send_cq != nullptr && attr.recv_cq != nullptr ? 0 : EINVAL;
    case IBV_QPT_XRC_SEND:
      return has_pd && attr.send_cq != nullptr && attr.srq == nullptr ? 0 : EINVAL;
    case IBV_QPT_XRC_RECV:
      return has_xrcd ? 0 : EINVAL;
    default:
      return EOPNOTSUPP;
  }
}

// A QP over a table of receive queues takes no part in anything but flows.
ibv_qp* create_scaling_qp(ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  constexpr unsigned kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
                              IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  const bool has_flags =
      (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr.create_flags != 0;
  Scaling* scaling = nullptr;
  int error = (attr.comp_mask & ~kKnown) != 0 || has_flags ? EOPNOTSUPP : 0;
  if (error == 0) error = make_scaling(attr, scaling);
  auto* queue = error == 0 ? new_object<QueuePair>() : nullptr;
  if (queue == nullptr) {
    if (scaling != nullptr) release(scaling);
    errno = error != 0 ? error : ENOMEM;
    return nullptr;
  }
  fill(queue->verbs.qp, context, attr);
  queue->scaling = scaling;
  if (ibv_pd* const pd = queue->verbs.qp.pd; pd != nullptr) ++to_domain(pd).users;
  return &queue->verbs.qp;
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) != 0) return create_scaling_qp(context, *attr);
  DeviceContext& device = to_context(context);
  int error = check_attributes(*attr);
  auto* queue = error == 0 ? new_object<QueuePair>() : nullptr;
  if (error == 0 && queue == nullptr) error = ENOMEM;
  if (error == 0) {
    fill(queue->verbs.qp, context, *attr);
    queue->signal_all = attr->sq_sig_all != 0;
    queue->max_tso_header = tso_header_of(*attr);
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
      if ((attr->send_ops_flags & ~offered_send_ops(*queue, device.state.limits)) != 0) {
        error = EOPNOTSUPP;
      } else {
        set_work_request_functions(queue->verbs.qp_ex, attr->send_ops_flags);
        mark_extended(&queue->verbs.qp);
      }
    }
  }
  if (error == 0) error = create_in_nic(device, *queue, *attr);
  if (error != 0) {
    if (queue != nullptr) delete_object(queue);
    errno = error;
    return nullptr;
  }
  attr->cap = queue->cap;
  return &queue->verbs.qp;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex extended = {};
  extended.qp_context = attr->qp_context;
  extended.send_cq = attr->send_cq;
  extended.recv_cq = attr->recv_cq;
  extended.srq = attr->srq;
  extended.cap = attr->cap;
  extended.qp_type = attr->qp_type;
  extended.sq_sig_all = attr->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* qp = create_qp_ex(pd->context, &extended);
  if (qp != nullptr) attr->cap = extended.cap;
  return qp;
}

void discard_completions(ibv_qp* qp) {
  for (ibv_cq* cq : {qp->send_cq, qp->recv_cq}) {
    if (cq == nullptr) continue;
    CompletionQueue& queue = to_queue(cq);
    if (is_own_batch(queue)) {
      queue.ring.kill(qp->qp_num);
      continue;
    }
    Lock lock(queue.lock);
    queue.ring.kill(qp->qp_num);
    queue.ring.give_back();
  }
}

int destroy_qp(ibv_qp* qp) {
  QueuePair& queue = to_queue_pair(qp);
  if (queue.scaling != nullptr) {
    if (__atomic_load_n(&queue.flows, __ATOMIC_RELAXED) != 0) return EBUSY;
    release(queue.scaling);
    if (qp->pd != nullptr) --to_domain(qp->pd).users;
    delete_object(&queue);
    return 0;
  }
  DeviceContext& context = to_context(qp->context);
  rocemu_destroy_events_reply reply;
  if (const int error = destroy_in_nic(context, qp->handle, reply); error != 0) return error;
  discard_completions(qp);
  ibv_wq* const wq = queue.work_queue;
  pthread_mutex_t& mutex = wq != nullptr ? wq->mutex : qp->mutex;
  const uint32_t& completed = wq != nullptr ? wq->events_completed : qp->events_completed;
  const uint32_t delivered =
      reply.async_events - purge_unread(context, context.state.async_events,
                                        sizeof(rocemu_async_event), reinterpret_cast<uintptr_t>(qp),
                                        reply.async_events, completed, mutex);
  await_acknowledgement(mutex, wq != nullptr ? wq->cond : qp->cond,
                        [&] { return completed == delivered; });
  queue.memory.unmap();
  delete_object(&queue);
  return 0;
}

}  // namespace rocemu::provider
