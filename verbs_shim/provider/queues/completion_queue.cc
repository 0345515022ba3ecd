#include "verbs_shim/provider/queues/completion_queue.h"

#include <errno.h>

#include <algorithm>

#include "verbs_shim/abi/memory.h"
#include "verbs_shim/provider/common/new_object.h"
#include "verbs_shim/provider/common/verbs_ops.h"
#include "verbs_shim/provider/context/acknowledge.h"
#include "verbs_shim/provider/queues/inline_cqe_data.h"

namespace rocemu::provider {
namespace {

int destroy_in_nic(DeviceContext& context, uint32_t handle, rocemu_destroy_events_reply& reply) {
  rocemu_handle_message request = {};
  request.handle = handle;
  return context.call(ROCEMU_OP_DESTROY_CQ, request, reply);
}

bool is_ring(const rocemu_create_cq_reply& reply, uint32_t asked) {
  if (reply.entries == 0 || reply.entries > kMaxEntries || reply.entries < asked) return false;
  const uint64_t needed =
      ROCEMU_CQ_RING_OFFSET + uint64_t{ring_slots(reply.entries)} * sizeof(struct rocemu_cqe);
  return reply.memory_bytes >= needed;
}

// More may be granted than the device says it can do.
int usable(const DeviceContext& context, const rocemu_create_cq_reply& reply) {
  return static_cast<int>(std::min(reply.entries, context.state.limits.max_cqe));
}

int create_in_nic(DeviceContext& context, CompletionQueue& queue, uint32_t cqe, int comp_vector,
                  uint32_t flags) {
  rocemu_create_cq request = {};
  request.cqe = cqe;
  request.comp_vector = static_cast<uint32_t>(comp_vector);
  request.flags = flags;
  request.user_pointer = reinterpret_cast<uintptr_t>(&queue.verbs.cq);
  rocemu_create_cq_reply reply;
  ReceivedFds received;
  int error = queue.channel == nullptr
                  ? context.call(ROCEMU_OP_CREATE_CQ, request, reply, &received)
                  : context.state.channels.create_cq(*queue.channel, request, reply, received);
  if (error != 0) return error;
  error = is_ring(reply, cqe)
              ? queue.memory.map(queue.parent_domain, QueueResource::kCompletionQueue,
                                 received.get(0), reply.memory_bytes)
              : EPROTO;
  if (error != 0) {
    rocemu_destroy_events_reply ignored;
    destroy_in_nic(context, reply.cq, ignored);
    return error;
  }
  queue.ring.attach(queue.memory.address(), reply.entries);
  queue.verbs.cq.handle = reply.cq;
  queue.verbs.cq.cqe = usable(context, reply);
  return 0;
}

CompletionQueue* create(ibv_context* context, uint32_t cqe, ibv_comp_channel* channel,
                        int comp_vector, ibv_pd* parent_domain, uint32_t flags) {
  DeviceState& state = to_context(context).state;
  if (cqe == 0 || cqe > state.limits.max_cqe || comp_vector < 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* queue = new_object<CompletionQueue>();
  if (queue == nullptr) return nullptr;
  queue->parent_domain = parent_domain;
  int error = 0;
  if (channel != nullptr) {
    queue->channel = state.channels.acquire(channel->fd);
    if (queue->channel == nullptr) error = EINVAL;
  }
  // libibverbs fills the rest of ibv_cq when this is done.
  queue->verbs.cq.context = context;
  if (error == 0) error = create_in_nic(to_context(context), *queue, cqe, comp_vector, flags);
  if (error == 0) {
    make_known(*queue);
    return queue;
  }
  if (queue->channel != nullptr) state.channels.release(queue->channel);
  delete_object(queue);
  errno = error;
  return nullptr;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  const uint32_t entries = cqe > 0 ? static_cast<uint32_t>(cqe) : 0;
  CompletionQueue* queue = create(context, entries, channel, comp_vector, nullptr, 0);
  return queue == nullptr ? nullptr : &queue->verbs.cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const bool has_flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  const unsigned flags = has_flags ? attr->flags : 0;
  const bool has_domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
  constexpr unsigned kKnown = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr unsigned kKnownFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attr->wc_flags & ~kOfferedWcFlags) != 0 || (attr->comp_mask & ~kKnown) != 0 ||
      (flags & ~kKnownFlags) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_pd* domain = has_domain ? attr->parent_domain : nullptr;
  if (has_domain && (domain == nullptr || to_domain(domain).contained == nullptr)) {
    errno = EINVAL;
    return nullptr;
  }
  const bool deaf = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  CompletionQueue* queue =
      create(context, attr->cqe, attr->channel, static_cast<int>(attr->comp_vector), domain,
             deaf ? ROCEMU_CQ_IGNORES_OVERRUN : 0);
  if (queue == nullptr) return nullptr;
  queue->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  set_poll_functions(queue->verbs.cq_ex, attr->wc_flags);
  return &queue->verbs.cq_ex;
}

namespace {

// Needs the lock.
int move_to_another_ring(CompletionQueue& queue, uint32_t cqe) {
  ibv_cq* const cq = &queue.verbs.cq;
  DeviceContext& context = to_context(cq->context);
  rocemu_resize_cq request = {};
  request.cq = cq->handle;
  request.cqe = cqe;
  rocemu_create_cq_reply reply;
  ReceivedFds received;
  int error = context.call(ROCEMU_OP_RESIZE_CQ, request, reply, &received);
  if (error != 0) return error;
  QueueMemory memory;
  error = is_ring(reply, request.cqe)
              ? memory.map_anywhere(queue.parent_domain, QueueResource::kCompletionQueue,
                                    received.get(0), reply.memory_bytes)
              : EPROTO;
  // The NIC has gone over already: without the new ring the CQ is of no more use.
  if (error != 0) return error;
  queue.ring.move_to(memory.address(), reply.entries);
  queue.retired.unmap();
  queue.retired = queue.memory;
  queue.memory = memory;
  cq->cqe = usable(context, reply);
  return 0;
}

}  // namespace

int resize_cq(ibv_cq* cq, int cqe) {
  CompletionQueue& queue = to_queue(cq);
  DeviceContext& context = to_context(cq->context);
  if (cqe <= 0 || static_cast<uint32_t>(cqe) > context.state.limits.max_cqe) return EINVAL;
  if (is_own_batch(queue)) return EBUSY;
  Lock lock(queue.lock);
  // Counts as taken by the program what has been passed over.
  queue.ring.give_back();
  queue.ring.set_moves(true);
  const int error = move_to_another_ring(queue, static_cast<uint32_t>(cqe));
  queue.ring.set_moves(false);
  return error;
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  rocemu_moderate_cq request = {};
  request.cq = cq->handle;
  request.count = attr->moderate.cq_count;
  request.period_us = attr->moderate.cq_period;
  rocemu_handle_message reply;
  return to_context(cq->context).call(ROCEMU_OP_MODERATE_CQ, request, reply);
}

int destroy_cq(ibv_cq* cq) {
  CompletionQueue& queue = to_queue(cq);
  DeviceContext& context = to_context(cq->context);
  rocemu_destroy_events_reply reply;
  if (const int error = destroy_in_nic(context, cq->handle, reply); error != 0) return error;
  forget(queue);

  const auto pointer = reinterpret_cast<uintptr_t>(cq);
  if (queue.channel != nullptr && !queue.channel->closed) {
    reply.comp_events -= purge_unread(context, queue.channel->events, sizeof(pointer), pointer,
                                      reply.comp_events, cq->comp_events_completed, cq->mutex);
  } else {
    reply.comp_events = cq->comp_events_completed;
  }
  reply.async_events -=
      purge_unread(context, context.state.async_events, sizeof(rocemu_async_event), pointer,
                   reply.async_events, cq->async_events_completed, cq->mutex);
  await_acknowledgement(cq->mutex, cq->cond, [&] {
    return cq->comp_events_completed == reply.comp_events &&
           cq->async_events_completed == reply.async_events;
  });

  if (queue.channel != nullptr) context.state.channels.release(queue.channel);
  queue.memory.unmap();
  queue.retired.unmap();
  delete_object(&queue);
  return 0;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  to_queue(cq).ring.arm(solicited_only != 0 ? ROCEMU_CQ_ARM_SOLICITED : ROCEMU_CQ_ARM_NEXT);
  return 0;
}

}  // namespace rocemu::provider
