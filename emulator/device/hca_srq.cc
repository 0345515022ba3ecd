// Shared receive queues of the HCA.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

int check_srq(const DeviceLimits& limits, const SrqSpec& spec) {
  return spec.max_wr > 0 && spec.max_wr <= limits.max_srq_wr && spec.max_sge <= limits.max_srq_sge
             ? 0
             : EINVAL;
}

Result<CreatedSrq> Hca::create_srq(ContextId id, const SrqSpec& spec,
                                   std::unique_ptr<ReceiveRing> ring) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (const int error = check_srq(impl_->config.limits, spec)) return tl::unexpected(error);
  Pd* pd = context->pds.find(spec.pd);
  Cq* cq = spec.xrc ? context->cqs.find(spec.cq) : nullptr;
  OpenXrcd* xrcd = spec.xrc ? context->xrcds.find(spec.xrcd) : nullptr;
  if (pd == nullptr || (spec.xrc && (cq == nullptr || xrcd == nullptr)))
    return tl::unexpected(ENOENT);
  if (impl_->totals.srqs >= impl_->config.limits.max_srq) return tl::unexpected(ENOMEM);
  auto srq =
      std::make_unique<Srq>(*context, *pd, spec, std::move(ring), impl_->deferred.srqs_at_limit);
  ++pd->users;
  ++impl_->totals.srqs;
  if (spec.xrc) {
    srq->cq = cq;
    srq->xrcd = xrcd;
    srq->domain = xrcd->domain;
    srq->number = impl_->xrc_domains.next_srq_number(*srq->domain);
    srq->domain->srqs.emplace(srq->number.value, srq.get());
    ++cq->users;
    ++xrcd->users;
  }
  const wire::Qpn number = srq->number;
  return CreatedSrq{context->srqs.insert(std::move(srq)), number};
}

void Hca::Impl::destroy_srq(Srq& srq) {
  std::erase(deferred.srqs_at_limit, &srq);
  --srq.pd().users;
  --totals.srqs;
  if (!srq.domain) return;
  srq.domain->srqs.erase(srq.number.value);
  --srq.cq->users;
  --srq.xrcd->users;
}

Result<EventCounts> Hca::destroy_srq(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Srq* srq = context == nullptr ? nullptr : context->srqs.find(handle);
  if (srq == nullptr) return tl::unexpected(ENOENT);
  if (srq->users > 0) return tl::unexpected(EBUSY);
  const EventCounts counts{0, srq->async_events_written};
  impl_->destroy_srq(*srq);
  context->srqs.erase(handle);
  return counts;
}

int Hca::resize_srq(ContextId id, Handle handle, uint32_t max_wr,
                    std::unique_ptr<ReceiveRing>&& ring) {
  Context* context = impl_->find_context(id);
  Srq* srq = context == nullptr ? nullptr : context->srqs.find(handle);
  if (srq == nullptr) return ENOENT;
  if (max_wr == 0 || max_wr > impl_->config.limits.max_srq_wr || max_wr < srq->limit())
    return EINVAL;
  if (!srq->prepare_ring(*ring)) return EINPROGRESS;
  return srq->replace_ring(std::move(ring), max_wr) ? 0 : EINVAL;
}

int Hca::set_srq_limit(ContextId id, Handle handle, uint32_t limit) {
  Context* context = impl_->find_context(id);
  Srq* srq = context == nullptr ? nullptr : context->srqs.find(handle);
  if (srq == nullptr) return ENOENT;
  if (limit > srq->spec().max_wr) return EINVAL;
  srq->arm(limit);
  return 0;
}

Result<uint32_t> Hca::srq_limit(ContextId id, Handle handle) const {
  Context* context = impl_->find_context(id);
  const Srq* srq = context == nullptr ? nullptr : context->srqs.find(handle);
  if (srq == nullptr) return tl::unexpected(ENOENT);
  return srq->limit();
}

}  // namespace rocemu::device
