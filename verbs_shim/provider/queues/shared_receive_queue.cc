#include "verbs_shim/provider/queues/shared_receive_queue.h"

#include <errno.h>

#include <algorithm>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/abi/services.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/acknowledge.h"
#include "verbs_shim/provider/queues/xrc_domain.h"
#include "verbs_shim/provider/rings/receive_request.h"

namespace rocemu::provider {
namespace {

int destroy_in_nic(DeviceContext& context, uint32_t handle, rocemu_destroy_events_reply& reply) {
  rocemu_handle_message request = {};
  request.handle = handle;
  return context.call(ROCEMU_OP_DESTROY_SRQ, request, reply);
}

bool is_ring(const rocemu_create_srq_reply& reply) {
  const uint64_t stride =
      sizeof(struct rocemu_recv_wqe) + uint64_t{reply.max_sge} * sizeof(struct rocemu_sge);
  return reply.entries != 0 && reply.entries <= kMaxEntries && reply.stride_bytes % 64 == 0 &&
         reply.stride_bytes >= stride && reply.offset_bytes >= sizeof(rocemu_queue_header) &&
         reply.offset_bytes % 64 == 0 && reply.offset_bytes <= reply.memory_bytes &&
         uint64_t{ring_slots(reply.entries)} * reply.stride_bytes <=
             reply.memory_bytes - reply.offset_bytes;
}

void attach(const DeviceContext& context, SharedReceiveQueue& queue,
            const rocemu_create_srq_reply& reply) {
  auto* base = static_cast<uint8_t*>(queue.memory.address());
  auto* header = reinterpret_cast<rocemu_queue_header*>(base);
  queue.ring.attach(&header->rq_producer, &header->rq_consumer, base + reply.offset_bytes,
                    reply.entries, reply.stride_bytes, &header->stamps_posts);
  queue.max_wr = std::min(reply.entries, context.state.limits.max_srq_wr);
  queue.max_sge = reply.max_sge;
}

int create_in_nic(DeviceContext& context, SharedReceiveQueue& queue,
                  const ibv_srq_init_attr_ex& attr) {
  rocemu_create_srq request = {};
  request.pd = attr.pd->handle;
  request.srq_type = static_cast<uint32_t>(queue.type);
  request.max_wr = attr.attr.max_wr;
  request.max_sge = attr.attr.max_sge;
  if (queue.type != IBV_SRQT_BASIC) request.cq = attr.cq->handle;
  if (queue.type == IBV_SRQT_XRC) request.xrcd = to_domain(attr.xrcd).handle;
  if (queue.type == IBV_SRQT_TM) request.max_tags = attr.tm_cap.max_num_tags;
  request.user_pointer = reinterpret_cast<uintptr_t>(&queue.srq);
  rocemu_create_srq_reply reply;
  ReceivedFds received;
  int error = context.call(ROCEMU_OP_CREATE_SRQ, request, reply, &received);
  if (error != 0) return error;
  error = is_ring(reply) ? queue.memory.map(attr.pd, QueueResource::kSharedReceive, received.get(0),
                                            reply.memory_bytes)
                         : EPROTO;
  if (error != 0) {
    rocemu_destroy_events_reply ignored;
    destroy_in_nic(context, reply.srq, ignored);
    return error;
  }
  attach(context, queue, reply);
  queue.srq.handle = reply.srq;
  queue.number = reply.srq_num;
  return 0;
}

static_assert(int{ROCEMU_SRQ_BASIC} == int{IBV_SRQT_BASIC});
static_assert(int{ROCEMU_SRQ_XRC} == int{IBV_SRQT_XRC});
static_assert(int{ROCEMU_SRQ_TM} == int{IBV_SRQT_TM});

int check_attributes(const ibv_srq_init_attr_ex& attr, ibv_srq_type type) {
  constexpr uint32_t kKnown = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                              IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  if ((attr.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC && type != IBV_SRQT_TM) return EOPNOTSUPP;
  const auto given = [&](uint32_t bit, const void* object) {
    return (attr.comp_mask & bit) != 0 && object != nullptr;
  };
  const bool has_tags = (attr.comp_mask & IBV_SRQ_INIT_ATTR_TM) != 0;
  const bool complete =
      given(IBV_SRQ_INIT_ATTR_PD, attr.pd) &&
      (type == IBV_SRQT_BASIC || given(IBV_SRQ_INIT_ATTR_CQ, attr.cq)) &&
      (type != IBV_SRQT_XRC || given(IBV_SRQ_INIT_ATTR_XRCD, attr.xrcd)) &&
      (type == IBV_SRQT_TM) == has_tags &&
      (!has_tags || (attr.tm_cap.max_num_tags > 0 && attr.tm_cap.max_num_tags <= ROCEMU_TAGS_MAX));
  return complete ? 0 : EINVAL;
}

}  // namespace

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const ibv_srq_type type =
      (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attr->srq_type : IBV_SRQT_BASIC;
  int error = check_attributes(*attr, type);
  auto* queue = error == 0 ? new_object<SharedReceiveQueue>() : nullptr;
  if (error == 0 && queue == nullptr) error = ENOMEM;
  if (error == 0) {
    queue->type = type;
    error = create_in_nic(to_context(context), *queue, *attr);
  }
  if (error != 0) {
    if (queue != nullptr) delete_object(queue);
    errno = error;
    return nullptr;
  }
  ibv_srq& srq = queue->srq;
  srq.context = context;
  srq.srq_context = attr->srq_context;
  srq.pd = attr->pd;
  pthread_mutex_init(&srq.mutex, nullptr);
  pthread_cond_init(&srq.cond, nullptr);
  attr->attr.max_wr = queue->max_wr;
  attr->attr.max_sge = queue->max_sge;
  return &srq;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex extended = {};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_srq* srq = create_srq_ex(pd->context, &extended);
  if (srq != nullptr) attr->attr = extended.attr;
  return srq;
}

namespace {

int resize_srq(ibv_srq* srq, uint32_t max_wr) {
  SharedReceiveQueue& queue = to_shared_queue(srq);
  rocemu_resize_srq request = {};
  request.srq = srq->handle;
  request.max_wr = max_wr;
  Lock lock(queue.lock);
  request.max_sge = queue.max_sge;
  rocemu_create_srq_reply reply;
  ReceivedFds received;
  int error = to_context(srq->context).call(ROCEMU_OP_RESIZE_SRQ, request, reply, &received);
  if (error != 0) return error;
  QueueMemory memory;
  error = is_ring(reply) && reply.max_sge >= queue.max_sge
              ? memory.map_anywhere(srq->pd, QueueResource::kSharedReceive, received.get(0),
                                    reply.memory_bytes)
              : EPROTO;
  // The NIC has gone over already: without the new ring the SRQ is of no more use.
  if (error != 0) return error;
  queue.memory.unmap();
  queue.memory = memory;
  attach(to_context(srq->context), queue, reply);
  return 0;
}

}  // namespace

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    if ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > attr->max_wr) return EINVAL;
    if (const int error = resize_srq(srq, attr->max_wr); error != 0) return error;
  }
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  rocemu_srq_limit request = {};
  request.srq = srq->handle;
  request.limit = attr->srq_limit;
  rocemu_handle_message reply;
  return to_context(srq->context).call(ROCEMU_OP_MODIFY_SRQ, request, reply);
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  const SharedReceiveQueue& queue = to_shared_queue(srq);
  rocemu_srq_limit request = {};
  request.srq = srq->handle;
  rocemu_srq_limit reply;
  const int error = to_context(srq->context).call(ROCEMU_OP_QUERY_SRQ, request, reply);
  if (error != 0) return error;
  attr->max_wr = queue.max_wr;
  attr->max_sge = queue.max_sge;
  attr->srq_limit = reply.limit;
  return 0;
}

int destroy_srq(ibv_srq* srq) {
  SharedReceiveQueue& queue = to_shared_queue(srq);
  DeviceContext& context = to_context(srq->context);
  rocemu_destroy_events_reply reply;
  if (const int error = destroy_in_nic(context, srq->handle, reply); error != 0) return error;
  const uint32_t delivered =
      reply.async_events - purge_unread(context, context.state.async_events,
                                        sizeof(rocemu_async_event),
                                        reinterpret_cast<uintptr_t>(srq), reply.async_events,
                                        srq->events_completed, srq->mutex);
  await_acknowledgement(srq->mutex, srq->cond, [&] { return srq->events_completed == delivered; });
  queue.memory.unmap();
  delete_object(&queue);
  return 0;
}

int get_srq_num(ibv_srq* srq, uint32_t* number) {
  const SharedReceiveQueue& queue = to_shared_queue(srq);
  if (queue.type != IBV_SRQT_XRC) return EINVAL;
  *number = queue.number;
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  SharedReceiveQueue& queue = to_shared_queue(srq);
  Lock lock(queue.lock);
  return post_srq_recv_locked(queue, request, bad);
}

int post_srq_recv_locked(SharedReceiveQueue& queue, ibv_recv_wr* request, ibv_recv_wr** bad) {
  int error = 0;
  while (error == 0 && request != nullptr) {
    error = put_receive(queue.ring, queue.max_sge, *request);
    if (error == 0) request = request->next;
  }
  if (error != 0 && bad != nullptr) *bad = request;
  if (queue.ring.has_claimed()) queue.ring.publish();
  return error;
}

namespace {

int change_tags(ibv_srq& srq, ibv_ops_wr& op) {
  rocemu_change_tags request = {};
  request.srq = srq.handle;
  request.operation = op.opcode;
  request.flags = static_cast<uint32_t>(op.flags);
  request.unexpected = op.tm.unexpected_cnt;
  request.wr_id = op.wr_id;
  if (op.opcode == IBV_WR_TAG_DEL) request.handle = op.tm.handle;
  if (op.opcode == IBV_WR_TAG_ADD) {
    if (op.tm.add.num_sge < 0 || op.tm.add.num_sge > ROCEMU_TAG_SGE_MAX) return EINVAL;
    request.receive_wr_id = op.tm.add.recv_wr_id;
    request.tag = op.tm.add.tag;
    request.mask = op.tm.add.mask;
    request.num_sge = static_cast<uint32_t>(op.tm.add.num_sge);
    for (uint32_t i = 0; i < request.num_sge; ++i) {
      const ibv_sge& sge = op.tm.add.sg_list[i];
      request.sges[i] = {sge.addr, sge.length, sge.lkey};
    }
  }
  rocemu_handle_message reply;
  const int error = to_context(srq.context).call(ROCEMU_OP_CHANGE_TAGS, request, reply);
  if (error == 0 && op.opcode == IBV_WR_TAG_ADD) op.tm.handle = reply.handle;
  return error;
}

}  // namespace

// Each operation is a message to the NIC, which has carried it out when this returns; its
// completion stands in the CQ then.
int post_srq_ops(ibv_srq* srq, ibv_ops_wr* op, ibv_ops_wr** bad) {
  int error = to_shared_queue(srq).type == IBV_SRQT_TM ? 0 : EINVAL;
  while (error == 0 && op != nullptr) {
    error = change_tags(*srq, *op);
    if (error == 0) op = op->next;
  }
  if (error != 0 && bad != nullptr) *bad = op;
  return error;
}

}  // namespace rocemu::provider
