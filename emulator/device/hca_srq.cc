// Shared receive queues of the HCA.
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

int check_srq(const DeviceLimits& limits, const SrqSpec& spec) {
  const bool fits =
      spec.max_wr > 0 && spec.max_wr <= limits.max_srq_wr && spec.max_sge <= limits.max_srq_sge &&
      (!spec.tag_matching || (spec.max_tags > 0 && spec.max_tags <= limits.max_srq_tags));
  return fits ? 0 : EINVAL;
}

Result<CreatedSrq> Hca::create_srq(ContextId id, const SrqSpec& spec,
                                   std::unique_ptr<ReceiveRing> ring) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (const int error = check_srq(impl_->config.limits, spec)) return tl::unexpected(error);
  Pd* pd = context->pds.find(spec.pd);
  const bool has_cq = spec.xrc || spec.tag_matching;
  Cq* cq = has_cq ? context->cqs.find(spec.cq) : nullptr;
  OpenXrcd* xrcd = spec.xrc ? context->xrcds.find(spec.xrcd) : nullptr;
  if (pd == nullptr || (has_cq && cq == nullptr) || (spec.xrc && xrcd == nullptr))
    return tl::unexpected(ENOENT);
  if (impl_->totals.srqs >= impl_->config.limits.max_srq) return tl::unexpected(ENOMEM);
  auto srq =
      std::make_unique<Srq>(*context, *pd, spec, std::move(ring), impl_->deferred.srqs_at_limit);
  ++pd->users;
  ++impl_->totals.srqs;
  srq->cq = cq;
  if (cq != nullptr) ++cq->users;
  if (spec.tag_matching) srq->tags = std::make_unique<TagList>(spec.max_tags);
  if (spec.xrc) {
    srq->xrcd = xrcd;
    srq->domain = xrcd->domain;
    srq->number = impl_->xrc_domains.next_srq_number(*srq->domain);
    srq->domain->srqs.emplace(srq->number.value, srq.get());
    ++xrcd->users;
  }
  const wire::Qpn number = srq->number;
  return CreatedSrq{context->srqs.insert(std::move(srq)), number};
}

void Hca::Impl::destroy_srq(Srq& srq) {
  std::erase(deferred.srqs_at_limit, &srq);
  --srq.pd().users;
  --totals.srqs;
  if (srq.cq != nullptr) --srq.cq->users;
  if (!srq.domain) return;
  srq.domain->srqs.erase(srq.number.value);
  --srq.xrcd->users;
}

Result<EventCounts> Hca::destroy_srq(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Srq* srq = find_object(context, &Context::srqs, handle);
  if (srq == nullptr) return tl::unexpected(ENOENT);
  if (srq->users > 0) return tl::unexpected(EBUSY);
  const EventCounts counts{0, srq->async_events_written};
  impl_->destroy_srq(*srq);
  context->srqs.erase(handle);
  return counts;
}

int Hca::resize_srq(ContextId id, Handle handle, uint32_t max_wr,
                    std::unique_ptr<ReceiveRing>& ring) {
  Context* context = impl_->find_context(id);
  Srq* srq = find_object(context, &Context::srqs, handle);
  if (srq == nullptr) return ENOENT;
  if (max_wr == 0 || max_wr > impl_->config.limits.max_srq_wr || max_wr < srq->limit())
    return EINVAL;
  if (!srq->prepare_ring(*ring)) return EINPROGRESS;
  return srq->replace_ring(ring, max_wr) ? 0 : EINVAL;
}

int Hca::set_srq_limit(ContextId id, Handle handle, uint32_t limit) {
  Context* context = impl_->find_context(id);
  Srq* srq = find_object(context, &Context::srqs, handle);
  if (srq == nullptr) return ENOENT;
  if (limit > srq->spec().max_wr) return EINVAL;
  srq->arm(limit);
  return 0;
}

namespace {

// The completion's opcode, status and, of a buffer that is added, handle. Empty: there is no room.
struct TagOutcome {
  transport::WcOpcode opcode{};
  bool done = true;
  uint32_t handle = 0;
};

std::optional<TagOutcome> carry_out(TagList& tags, const TagOp& op) {
  using enum verbs::TagListOperation;
  const auto operation = static_cast<verbs::TagListOperation>(op.operation);
  if (operation == sync || (op.flags & verbs::tag_list_flag::kSync) != 0)
    tags.synchronize(op.unexpected);
  switch (operation) {
    case add: {
      const auto handle = tags.add(op);
      if (!handle) return std::nullopt;
      return TagOutcome{transport::WcOpcode::tm_add, true, *handle};
    }
    case remove:
      return TagOutcome{transport::WcOpcode::tm_delete, tags.remove(op.handle)};
    case sync:
      break;
  }
  return TagOutcome{transport::WcOpcode::tm_sync};
}

bool well_formed(const DeviceLimits& limits, const TagOp& op) {
  constexpr uint32_t kFlags = verbs::tag_list_flag::kSignaled | verbs::tag_list_flag::kSync;
  uint64_t bytes = 0;
  for (const transport::Sge& sge : op.sges) bytes += sge.length_bytes;
  return op.operation <= static_cast<uint32_t>(verbs::TagListOperation::sync) &&
         (op.flags & ~kFlags) == 0 && bytes <= limits.max_msg_size;
}

}  // namespace

Result<uint32_t> Hca::change_tags(ContextId id, Handle handle, const TagOp& op) {
  Context* context = impl_->find_context(id);
  Srq* srq = find_object(context, &Context::srqs, handle);
  if (srq == nullptr) return tl::unexpected(ENOENT);
  if (srq->tags == nullptr || !well_formed(impl_->config.limits, op)) return tl::unexpected(EINVAL);
  const auto outcome = carry_out(*srq->tags, op);
  if (!outcome) return tl::unexpected(ENOMEM);
  if (outcome->done && (op.flags & verbs::tag_list_flag::kSignaled) == 0) return outcome->handle;
  transport::Completion completion;
  completion.wr_id = op.wr_id;
  completion.opcode = outcome->opcode;
  completion.solicited = true;
  if (!outcome->done) completion.status = transport::WcStatus::tm_error;
  if (!srq->tags->in_step()) completion.tag_flags = verbs::wc_flag::kTmSyncRequest;
  srq->cq->push(completion);
  return outcome->handle;
}

Result<uint32_t> Hca::srq_limit(ContextId id, Handle handle) const {
  Context* context = impl_->find_context(id);
  const Srq* srq = find_object(context, &Context::srqs, handle);
  if (srq == nullptr) return tl::unexpected(ENOENT);
  return srq->limit();
}

}  // namespace rocemu::device
