// Objects: made, changed, destroyed.
#include "verbs_shim/checker/hooks/checker.h"

namespace rocemu::check {
namespace {

void tell_made(Hook& hook, const std::shared_ptr<Object>& object) {
  hook.checker.model.add(object);
  for (const auto& detector : hook.checker.detectors) detector->on_made(hook.call, *object);
}

void context_opened(rocemu_check_at at, ibv_context* verbs, const ibv_device_attr* limits,
                    uint32_t max_inline_data) {
  Hook hook(at);
  auto context = std::make_shared<Context>(hook.call, ROCEMU_CHECK_CONTEXT, nullptr, verbs, 0);
  context->model = &hook.checker.model;
  context->limits = *limits;
  context->max_inline_data = max_inline_data;
  context->device_name = verbs->device->name;
  tell_made(hook, context);
}

// The context of what is made now; null for one that was opened before a fork.
Context* context_of(Hook& hook, const ibv_context* verbs) {
  return static_cast<Context*>(hook.find(ROCEMU_CHECK_CONTEXT, verbs).get());
}

void made(rocemu_check_at at, rocemu_check_kind kind, ibv_context* verbs, void* handle,
          const void* parent, uint32_t number) {
  Hook hook(at);
  Context* context = context_of(hook, verbs);
  if (context == nullptr) return;
  auto object = kind == ROCEMU_CHECK_CHANNEL
                    ? std::make_shared<Channel>(hook.call, kind, context, handle, number)
                    : std::make_shared<Object>(hook.call, kind, context, handle, number);
  if (parent != nullptr) object->parent = hook.checker.model.find(ROCEMU_CHECK_PD, parent);
  tell_made(hook, object);
}

void mr_made(rocemu_check_at at, ibv_mr* mr, uint64_t iova, int access) {
  Hook hook(at);
  Context* context = context_of(hook, mr->context);
  if (context == nullptr) return;
  auto region = std::make_shared<MemoryRegion>(hook.call, ROCEMU_CHECK_MR, context, mr, mr->handle);
  region->parent = hook.checker.model.find(ROCEMU_CHECK_PD, mr->pd);
  region->address = reinterpret_cast<uintptr_t>(mr->addr);
  region->bytes = mr->length;
  region->iova = iova;
  region->access = access;
  region->lkey = mr->lkey;
  region->rkey = mr->rkey;
  tell_made(hook, region);
}

void mr_changed(rocemu_check_at at, ibv_mr* mr, int flags, void* address, size_t bytes,
                int access) {
  Hook hook(at);
  const auto object = hook.find(ROCEMU_CHECK_MR, mr);
  if (object == nullptr) return;
  auto& region = static_cast<MemoryRegion&>(*object);
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    region.address = reinterpret_cast<uintptr_t>(address);
    region.iova = region.address.load();
    region.bytes = bytes;
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) region.access = access;
  ++region.context->regions_changed;
  for (const auto& detector : hook.checker.detectors) {
    detector->on_region_changed(hook.call, region);
  }
}

void ah_made(rocemu_check_at at, ibv_ah* ah, const ibv_ah_attr* attr) {
  Hook hook(at);
  Context* context = context_of(hook, ah->context);
  if (context == nullptr) return;
  auto object =
      std::make_shared<AddressHandle>(hook.call, ROCEMU_CHECK_AH, context, ah, ah->handle);
  object->parent = hook.checker.model.find(ROCEMU_CHECK_PD, ah->pd);
  object->attr = *attr;
  tell_made(hook, object);
}

void* cq_made(rocemu_check_at at, ibv_cq* cq, ibv_comp_channel* channel, uint32_t asked,
              int ignores_overrun) {
  Hook hook(at);
  Context* context = context_of(hook, cq->context);
  if (context == nullptr) return nullptr;
  auto object =
      std::make_shared<CompletionQueue>(hook.call, ROCEMU_CHECK_CQ, context, cq, cq->handle);
  if (channel != nullptr) {
    const auto number = static_cast<uintptr_t>(channel->fd);
    object->channel = std::static_pointer_cast<Channel>(
        hook.checker.model.find(ROCEMU_CHECK_CHANNEL, reinterpret_cast<void*>(number)));
  }
  object->asked_entries = asked;
  object->entries = static_cast<uint32_t>(cq->cqe);
  object->ignores_overrun = ignores_overrun != 0;
  tell_made(hook, object);
  return static_cast<Object*>(object.get());
}

std::shared_ptr<CompletionQueue> find_cq(Hook& hook, const ibv_cq* cq) {
  return std::static_pointer_cast<CompletionQueue>(hook.checker.model.find(ROCEMU_CHECK_CQ, cq));
}

void* srq_made(rocemu_check_at at, ibv_srq* srq, const ibv_srq_init_attr_ex* asked, uint32_t max_wr,
               uint32_t max_sge) {
  Hook hook(at);
  Context* context = context_of(hook, srq->context);
  if (context == nullptr) return nullptr;
  auto object =
      std::make_shared<SharedReceiveQueue>(hook.call, ROCEMU_CHECK_SRQ, context, srq, srq->handle);
  object->parent = hook.checker.model.find(ROCEMU_CHECK_PD, srq->pd);
  if ((asked->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0) object->type = asked->srq_type;
  object->max_wr = max_wr;
  object->max_sge = max_sge;
  // Receives of tag matching come back in ways that the checker does not follow.
  object->receives.is_tracked = object->type != IBV_SRQT_TM;
  if (object->type != IBV_SRQT_BASIC) {
    object->cq = find_cq(hook, asked->cq);
    if (object->cq != nullptr) {
      std::lock_guard lock(object->cq->srqs_lock);
      object->cq->srqs.push_back(object);
    }
  }
  tell_made(hook, object);
  return static_cast<Object*>(object.get());
}

void* qp_made(rocemu_check_at at, const rocemu_check_qp* made) {
  Hook hook(at);
  const ibv_qp& qp = *made->qp;
  Context* context = context_of(hook, qp.context);
  if (context == nullptr) return nullptr;
  auto object =
      std::make_shared<QueuePair>(hook.call, ROCEMU_CHECK_QP, context, made->qp, qp.qp_num);
  object->parent = hook.checker.model.find(ROCEMU_CHECK_PD, qp.pd);
  object->type = qp.qp_type;
  object->signal_all = made->asked->sq_sig_all != 0;
  object->asked = made->asked->cap;
  object->granted = *made->granted;
  object->send_cq = find_cq(hook, qp.send_cq);
  object->recv_cq = find_cq(hook, qp.recv_cq);
  object->srq = std::static_pointer_cast<SharedReceiveQueue>(
      hook.checker.model.find(ROCEMU_CHECK_SRQ, qp.srq));
  tell_made(hook, object);
  return static_cast<Object*>(object.get());
}

void cq_resized(rocemu_check_at at, void* shadow, uint32_t cqe) {
  Hook hook(at);
  if (auto* cq = hook.object<CompletionQueue>(shadow)) cq->entries = cqe;
}

void refused(rocemu_check_at at, rocemu_check_kind kind, ibv_context* verbs, int error,
             const void* asked, uint64_t value) {
  Hook hook(at);
  Context* context = context_of(hook, verbs);
  if (context == nullptr) return;
  const Refusal refusal = {kind, context, error, asked, value};
  for (const auto& detector : hook.checker.detectors) detector->on_refused(hook.call, refusal);
}

// The object that this thread is destroying, from `going` to `gone`: by then its address may be
// another object's. A plain pointer, as verbs are called while a thread's variables are destroyed.
thread_local std::shared_ptr<Object>* going_now = nullptr;

void going(rocemu_check_at at, rocemu_check_kind kind, void* handle) {
  Hook hook(at);
  const auto object = hook.find(kind, handle);
  delete going_now;
  going_now = nullptr;
  if (object == nullptr) return;
  going_now = new std::shared_ptr<Object>(object);
  for (const auto& detector : hook.checker.detectors) detector->on_going(hook.call, *object);
}

void gone(rocemu_check_at at, rocemu_check_kind, void*, int error) {
  if (going_now == nullptr) return;
  Hook hook(at);
  const std::shared_ptr<Object> object = std::move(*going_now);
  delete going_now;
  going_now = nullptr;
  if (object->context != nullptr && object->context->model != &hook.checker.model) return;
  if (error != 0) {
    for (const auto& detector : hook.checker.detectors) {
      detector->on_not_gone(hook.call, *object, error);
    }
    return;
  }
  if (object->kind == ROCEMU_CHECK_QP) retire_all(hook, static_cast<QueuePair&>(*object));
  if (object->kind == ROCEMU_CHECK_SRQ) retire_all(hook, static_cast<SharedReceiveQueue&>(*object));
  hook.checker.model.remove(object, hook.call.place());
  for (const auto& detector : hook.checker.detectors) detector->on_gone(hook.call, *object);
}

void qp_modifying(rocemu_check_at at, void* shadow, const ibv_qp_attr* attr, int mask) {
  Hook hook(at);
  auto* qp = hook.object<QueuePair>(shadow);
  if (qp == nullptr) return;
  for (const auto& detector : hook.checker.detectors) {
    detector->on_modifying(hook.call, *qp, *attr, mask);
  }
}

// Takes over the members of `from` that `mask` names and that detectors ask about.
void take_over(QueuePair& qp, const ibv_qp_attr& from, int mask) {
  std::lock_guard lock(qp.attr_lock);
  ibv_qp_attr& to = qp.attr;
  const auto take = [mask](int flag, auto& member, const auto& value) {
    if ((mask & flag) != 0) member = value;
  };
  take(IBV_QP_STATE, to.qp_state, from.qp_state);
  take(IBV_QP_ACCESS_FLAGS, to.qp_access_flags, from.qp_access_flags);
  take(IBV_QP_PKEY_INDEX, to.pkey_index, from.pkey_index);
  take(IBV_QP_PORT, to.port_num, from.port_num);
  take(IBV_QP_QKEY, to.qkey, from.qkey);
  take(IBV_QP_AV, to.ah_attr, from.ah_attr);
  take(IBV_QP_PATH_MTU, to.path_mtu, from.path_mtu);
  take(IBV_QP_TIMEOUT, to.timeout, from.timeout);
  take(IBV_QP_RETRY_CNT, to.retry_cnt, from.retry_cnt);
  take(IBV_QP_RNR_RETRY, to.rnr_retry, from.rnr_retry);
  take(IBV_QP_RQ_PSN, to.rq_psn, from.rq_psn);
  take(IBV_QP_SQ_PSN, to.sq_psn, from.sq_psn);
  take(IBV_QP_MAX_QP_RD_ATOMIC, to.max_rd_atomic, from.max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, to.max_dest_rd_atomic, from.max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, to.min_rnr_timer, from.min_rnr_timer);
  take(IBV_QP_DEST_QPN, to.dest_qp_num, from.dest_qp_num);
  qp.attr_mask |= mask;
}

// The program may have asked the QP for its state, and polled nothing that tells of SQE.
bool goes_on(const QueuePair& qp, ibv_qp_state before, ibv_qp_state now) {
  return now == IBV_QPS_RTS && before != IBV_QPS_RTR && before != IBV_QPS_SQD &&
         qp.may_send_again_after_errors();
}

void note_that_it_goes_on(QueuePair& qp) {
  std::lock_guard lock(qp.sends.lock);
  qp.sends.went_on_at = qp.sends.posted();
}

void qp_modified(rocemu_check_at at, void* shadow, const ibv_qp_attr* attr, int mask, int error) {
  Hook hook(at);
  auto* qp = own_object<QueuePair>(shadow);
  if (qp == nullptr) return;
  const ibv_qp_state before = qp->state;
  if (error == 0) {
    take_over(*qp, *attr, mask);
    if ((mask & IBV_QP_STATE) != 0) {
      qp->state = attr->qp_state;
      if (goes_on(*qp, before, attr->qp_state)) note_that_it_goes_on(*qp);
      if (attr->qp_state == IBV_QPS_RESET) retire_all(hook, *qp);
    }
  }
  for (const auto& detector : hook.checker.detectors) {
    detector->on_modified(hook.call, *qp, *attr, mask, before, error);
  }
}

}  // namespace

void fill_object_hooks(rocemu_check_hooks& hooks) {
  hooks.context_opened = context_opened;
  hooks.made = made;
  hooks.mr_made = mr_made;
  hooks.mr_changed = mr_changed;
  hooks.ah_made = ah_made;
  hooks.cq_made = cq_made;
  hooks.srq_made = srq_made;
  hooks.qp_made = qp_made;
  hooks.cq_resized = cq_resized;
  hooks.refused = refused;
  hooks.going = going;
  hooks.gone = gone;
  hooks.qp_modifying = qp_modifying;
  hooks.qp_modified = qp_modified;
}

}  // namespace rocemu::check
