// Flows of the HCA: which frames its raw packet QPs get, and what is counted of them.
#include <bit>
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

namespace {

// Each frame that is not of RoCE is held against all flows of a device, so that they are few, and
// no program has them all.
constexpr uint32_t kMaxFlows = 256;
constexpr uint32_t kMaxFlowsOfContext = 64;
constexpr uint32_t kMaxCountersOfContext = 256;

// The QPs that `spec` names. ENOENT: there is none of that number; EINVAL: it takes no frames.
Result<std::vector<Qp*>> find_receivers(const Context& context, const FlowSpec& spec) {
  std::vector<Qp*> qps;
  for (const Handle handle : spec.qps) {
    Qp* const qp = context.qps.find(handle);
    if (qp == nullptr) return tl::unexpected(ENOENT);
    if (qp->body->service != transport::Service::raw_packet) return tl::unexpected(EINVAL);
    qps.push_back(qp);
  }
  return qps;
}

bool well_formed(const FlowSpec& spec) {
  return std::has_single_bit(spec.qps.size()) && spec.qps.size() <= kMaxFlowReceivers &&
         spec.kind <= static_cast<uint32_t>(transport::FlowKind::sniffer) &&
         (spec.hash.fields & ~transport::rss_field::kAll) == 0;
}

}  // namespace

Result<Handle> Hca::create_flow(ContextId id, const FlowSpec& spec) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (!well_formed(spec)) return tl::unexpected(EINVAL);
  const auto receivers = find_receivers(*context, spec);
  if (!receivers) return tl::unexpected(receivers.error());
  auto open = std::make_unique<OpenFlow>();
  open->qps = *receivers;
  if (spec.counters != 0) {
    open->counters = context->counters.find(spec.counters);
    if (open->counters == nullptr) return tl::unexpected(ENOENT);
  }
  if (impl_->totals.flows >= kMaxFlows || context->flows.size() >= kMaxFlowsOfContext)
    return tl::unexpected(ENOMEM);
  transport::Flow& flow = open->flow;
  flow.kind = static_cast<transport::FlowKind>(spec.kind);
  flow.priority = spec.priority;
  flow.value = spec.value;
  flow.mask = spec.mask;
  flow.drops = spec.drops;
  flow.has_tag = spec.tag.has_value();
  flow.tag = spec.tag.value_or(0);
  flow.receivers.hash = spec.hash;
  for (Qp* qp : open->qps) {
    flow.receivers.qpns.push_back(qp->body->qpn);
    ++qp->flows;
  }
  if (open->counters != nullptr) {
    flow.counters = &open->counters->counts;
    ++open->counters->users;
  }
  impl_->endpoint->flows().add(flow);
  ++impl_->totals.flows;
  return context->flows.insert(std::move(open));
}

void Hca::Impl::destroy_flow(OpenFlow& open) {
  endpoint->flows().remove(open.flow);
  for (Qp* qp : open.qps) --qp->flows;
  if (open.counters != nullptr) --open.counters->users;
  --totals.flows;
}

int Hca::destroy_flow(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  OpenFlow* flow = find_object(context, &Context::flows, handle);
  if (flow == nullptr) return ENOENT;
  impl_->destroy_flow(*flow);
  context->flows.erase(handle);
  return 0;
}

Result<Handle> Hca::create_counters(ContextId id) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(ENOENT);
  if (context->counters.size() >= kMaxCountersOfContext) return tl::unexpected(ENOMEM);
  return context->counters.insert(std::make_unique<Counters>());
}

int Hca::destroy_counters(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Counters* counters = find_object(context, &Context::counters, handle);
  if (counters == nullptr) return ENOENT;
  if (counters->users > 0) return EBUSY;
  context->counters.erase(handle);
  return 0;
}

Result<transport::FlowCounters> Hca::read_counters(ContextId id, Handle handle) const {
  const Context* context = impl_->find_context(id);
  const Counters* counters = find_object(context, &Context::counters, handle);
  if (counters == nullptr) return tl::unexpected(ENOENT);
  return counters->counts;
}

}  // namespace rocemu::device
