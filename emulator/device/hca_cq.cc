// CQs of the HCA.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

int check_cq(const DeviceLimits& limits, const CqSpec& spec) {
  if (spec.cqe == 0 || spec.cqe > limits.max_cqe) return EINVAL;
  return spec.comp_vector < limits.num_comp_vectors ? 0 : EINVAL;
}

bool Cq::reaches(const transport::MemoryRange& range) const noexcept {
  return range.space == context_.memory.get() && range.mapped == nullptr;
}

Result<Handle> Hca::create_cq(ContextId id, const CqSpec& spec,
                              std::unique_ptr<CompletionRing> ring) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (const int error = check_cq(impl_->config.limits, spec)) return tl::unexpected(error);
  Channel* channel = nullptr;
  if (spec.channel != 0) {
    channel = context->channels.find(spec.channel);
    if (channel == nullptr) return tl::unexpected(ENOENT);
  }
  if (impl_->totals.cqs >= impl_->config.limits.max_cq) return tl::unexpected(ENOMEM);
  if (channel != nullptr) ++channel->users;
  ++impl_->totals.cqs;
  return context->cqs.insert(std::make_unique<Cq>(*context, channel, spec.user_pointer,
                                                  std::move(ring), spec.ignores_overrun,
                                                  impl_->cq_publisher.dirty()));
}

int Hca::resize_cq(ContextId id, Handle handle, TimeNs now, std::unique_ptr<CompletionRing>& ring) {
  Context* context = impl_->find_context(id);
  Cq* cq = find_object(context, &Context::cqs, handle);
  if (cq == nullptr) return ENOENT;
  while (cq->tapped()) cq->untap();
  cq->publish(now);
  cq->mark_dirty();  // publish() may have held an event back
  if (!cq->prepare_ring(*ring)) return EINPROGRESS;
  return cq->replace_ring(ring) ? 0 : EINVAL;
}

int Hca::moderate_cq(ContextId id, Handle handle, const CqModeration& moderation) {
  Context* context = impl_->find_context(id);
  Cq* cq = find_object(context, &Context::cqs, handle);
  if (cq == nullptr) return ENOENT;
  cq->moderate(moderation);
  return 0;
}

void Hca::Impl::destroy_cq(Cq& cq) {
  cq_publisher.forget(cq);
  if (cq.channel() != nullptr) --cq.channel()->users;
  --totals.cqs;
}

Result<EventCounts> Hca::destroy_cq(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Cq* cq = find_object(context, &Context::cqs, handle);
  if (cq == nullptr) return tl::unexpected(ENOENT);
  if (cq->users > 0) return tl::unexpected(EBUSY);
  const EventCounts counts{cq->completion_events_written(), cq->async_events_written};
  impl_->destroy_cq(*cq);
  context->cqs.erase(handle);
  return counts;
}

}  // namespace rocemu::device
