#include "emulator/device/hca.h"

#include <algorithm>
#include <cerrno>

#include "emulator/device/hca_impl.h"

namespace rocemu::device {

namespace {

// enum ibv_event_type
constexpr uint32_t kEventCqError = 0;
constexpr uint32_t kEventPortActive = 9;
constexpr uint32_t kEventPortError = 10;
constexpr uint32_t kEventSrqLimitReached = 15;
constexpr uint32_t kEventGidChange = 18;
constexpr uint64_t kPortNumber = 1;

}  // namespace

int check_cq(const DeviceLimits& limits, const CqSpec& spec) {
  if (spec.cqe == 0 || spec.cqe > limits.max_cqe) return EINVAL;
  return spec.comp_vector < limits.num_comp_vectors ? 0 : EINVAL;
}

Hca::Hca(const HcaConfig& config, const transport::TransportLimits& limits,
         AddressResolver& resolver)
    : impl_(std::make_unique<Impl>(config, limits, resolver)) {}

Hca::~Hca() {
  while (!impl_->contexts.empty()) close_context(impl_->contexts.begin()->first);
}

const HcaConfig& Hca::config() const { return impl_->config; }
transport::Endpoint& Hca::endpoint() { return impl_->endpoint; }
ObjectCounts Hca::counts() const { return impl_->totals; }

void Hca::set_port(const PortConfig& port) {
  PortConfig& own = impl_->config.port;
  const auto tell = [&](uint32_t event) {
    for (const auto& entry : impl_->contexts)
      entry.second->async_events->async_event(kPortNumber, event);
  };
  const bool gids_changed = own.gids != port.gids;
  const bool state_changed = own.active != port.active;
  own = port;
  if (gids_changed) tell(kEventGidChange);
  if (state_changed) tell(port.active ? kEventPortActive : kEventPortError);
}

// The program's own memory, not that of a device or of another program whose objects it imported.
// What is mapped here takes less to write to than to carry.
bool Cq::reaches(const transport::MemoryRange& range) const noexcept {
  return range.space == context_.memory.get() && range.mapped == nullptr;
}

Context* Hca::Impl::find_context(ContextId id) const {
  const auto found = contexts.find(id);
  return found == contexts.end() ? nullptr : found->second.get();
}

Result<ContextId> Hca::open_context(std::unique_ptr<dma::AddressSpace> memory,
                                    std::unique_ptr<EventChannel> async_events) {
  if (impl_->contexts.size() >= impl_->config.limits.max_contexts) return tl::unexpected(ENOMEM);
  auto context = std::make_unique<Context>(impl_->config.port);
  context->memory = std::move(memory);
  context->async_events = std::move(async_events);
  const ContextId id = impl_->next_context++;
  impl_->contexts.emplace(id, std::move(context));
  ++impl_->totals.contexts;
  return id;
}

void Hca::close_context(ContextId id) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return;
  // Users before what they use.
  context->qps.for_each([&](Qp& qp) { impl_->destroy_qp(qp); });
  context->srqs.for_each([&](Srq& srq) { impl_->destroy_srq(srq); });
  context->cqs.for_each([&](Cq& cq) { impl_->destroy_cq(cq); });
  context->mws.for_each([&](Mw& mw) { impl_->destroy_mw(mw); });
  context->mrs.for_each([&](Mr& mr) { impl_->destroy_mr(mr); });
  context->dms.for_each([&](Dm& dm) { impl_->destroy_dm(dm); });
  impl_->totals.pds -= context->pds.size();
  impl_->totals.channels -= context->channels.size();
  impl_->totals.ahs -= context->addresses.handles.size();
  impl_->totals.xrcds -= context->xrcds.size();
  --impl_->totals.contexts;
  impl_->contexts.erase(id);
}

Result<Handle> Hca::alloc_pd(ContextId id) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(EINVAL);
  if (impl_->totals.pds >= impl_->config.limits.max_pd) return tl::unexpected(ENOMEM);
  ++impl_->totals.pds;
  return context->pds.insert(std::make_unique<Pd>(Pd{impl_->next_pd++, 0}));
}

int Hca::dealloc_pd(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Pd* pd = context == nullptr ? nullptr : context->pds.find(handle);
  if (pd == nullptr) return EINVAL;
  if (pd->users > 0) return EBUSY;
  context->pds.erase(handle);
  --impl_->totals.pds;
  return 0;
}

Result<Handle> Hca::create_channel(ContextId id, std::unique_ptr<EventChannel> events) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(EINVAL);
  if (impl_->totals.channels >= impl_->config.limits.max_channels) return tl::unexpected(ENOMEM);
  ++impl_->totals.channels;
  return context->channels.insert(std::make_unique<Channel>(Channel{std::move(events), 0}));
}

int Hca::destroy_channel(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Channel* channel = context == nullptr ? nullptr : context->channels.find(handle);
  if (channel == nullptr) return EINVAL;
  if (channel->users > 0) return EBUSY;
  context->channels.erase(handle);
  --impl_->totals.channels;
  return 0;
}

Result<Handle> Hca::create_cq(ContextId id, const CqSpec& spec,
                              std::unique_ptr<CompletionRing> ring) {
  Context* context = impl_->find_context(id);
  if (context == nullptr) return tl::unexpected(EINVAL);
  if (const int error = check_cq(impl_->config.limits, spec)) return tl::unexpected(error);
  Channel* channel = nullptr;
  if (spec.channel != 0) {
    channel = context->channels.find(spec.channel);
    if (channel == nullptr) return tl::unexpected(EINVAL);
  }
  if (impl_->totals.cqs >= impl_->config.limits.max_cq) return tl::unexpected(ENOMEM);
  if (channel != nullptr) ++channel->users;
  ++impl_->totals.cqs;
  return context->cqs.insert(std::make_unique<Cq>(*context, channel, spec.user_pointer,
                                                  std::move(ring), impl_->touched_cqs));
}

int Hca::resize_cq(ContextId id, Handle handle, TimeNs now, std::unique_ptr<CompletionRing> ring) {
  Context* context = impl_->find_context(id);
  Cq* cq = context == nullptr ? nullptr : context->cqs.find(handle);
  if (cq == nullptr) return EINVAL;
  cq->publish(now);
  cq->touch();  // that may have held an event back
  return cq->replace_ring(std::move(ring)) ? 0 : EINVAL;
}

int Hca::moderate_cq(ContextId id, Handle handle, const CqModeration& moderation) {
  Context* context = impl_->find_context(id);
  Cq* cq = context == nullptr ? nullptr : context->cqs.find(handle);
  if (cq == nullptr) return EINVAL;
  cq->moderate(moderation);
  return 0;
}

void Hca::Impl::destroy_cq(Cq& cq) {
  if (cq.touched()) std::erase(touched_cqs, &cq);
  std::erase(held, &cq);
  forget_sent_events();  // when the next is due may have been this one's
  if (cq.channel() != nullptr) --cq.channel()->users;
  --totals.cqs;
}

Result<EventCounts> Hca::destroy_cq(ContextId id, Handle handle) {
  Context* context = impl_->find_context(id);
  Cq* cq = context == nullptr ? nullptr : context->cqs.find(handle);
  if (cq == nullptr) return tl::unexpected(EINVAL);
  if (cq->users > 0) return tl::unexpected(EBUSY);
  const EventCounts counts{cq->completion_events_written(), cq->async_events_written};
  impl_->destroy_cq(*cq);
  context->cqs.erase(handle);
  return counts;
}

void Hca::Impl::send_async_event(Context& context, uint64_t element, uint32_t type,
                                 uint32_t& written) {
  // A program that does not read its events loses those that find the pipe full.
  if (context.async_events->async_event(element, type)) ++written;
}

void Hca::Impl::on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept {
  if (event == transport::QpEvent::last_wqe_reached) {
    qps_at_last_wqe.push_back(qpn);
  } else {
    tell_holders(qpn, event);
  }
}

void Hca::Impl::tell_holders(wire::Qpn qpn, transport::QpEvent event) {
  const auto found = qps_by_number.find(qpn.value);
  if (found == qps_by_number.end()) return;
  for (Qp* qp : found->second->holders)
    send_async_event(*qp->context, qp->spec.user_pointer, static_cast<uint32_t>(event),
                     qp->async_events_written);
}

// After the completions they speak of.
void Hca::Impl::send_due_events() {
  for (const wire::Qpn qpn : qps_at_last_wqe)
    tell_holders(qpn, transport::QpEvent::last_wqe_reached);
  qps_at_last_wqe.clear();
  for (Srq* srq : srqs_at_limit)
    send_async_event(srq->context(), srq->spec().user_pointer, kEventSrqLimitReached,
                     srq->async_events_written);
  srqs_at_limit.clear();
}

// The program may have posted a receive between the flush and the news of the state: the queues are
// flushed again once the state can be seen (rings.h, qp_state).
void Hca::Impl::on_qp_error(wire::Qpn qpn) noexcept {
  const auto found = qps_by_number.find(qpn.value);
  if (found == qps_by_number.end()) return;
  found->second->queues->show_state(transport::QpState::error);
  qps_in_error.push_back(qpn);
}

namespace {

// Itself or, where it is an XRC_RECV QP, by an SRQ of its domain.
bool completes_to(const QpBody& body, const Cq& cq) {
  const auto uses = [&](const Qp* qp) { return qp->send_cq == &cq || qp->receive_cq == &cq; };
  if (std::ranges::any_of(body.holders, uses)) return true;
  return body.domain != nullptr && std::ranges::any_of(body.domain->srqs, [&](const auto& entry) {
           return entry.second->cq == &cq;
         });
}

}  // namespace

// A CQ that lost a completion is of no more use, nor are the QPs that complete to it (IBTA vol 1,
// 11.6.3.1: CQ error).
void Hca::Impl::handle_overrun(Cq& cq) {
  send_async_event(cq.context(), cq.user_pointer(), kEventCqError, cq.async_events_written);
  for (const auto& [number, body] : qps_by_number) {
    if (!completes_to(*body, cq)) continue;
    const wire::Qpn qpn{number};
    if (endpoint.state(qpn) == transport::QpState::error ||
        endpoint.state(qpn) == transport::QpState::reset)
      continue;
    endpoint.fail(qpn);
    on_qp_error(qpn);
    on_qp_event(qpn, transport::QpEvent::fatal);
  }
}

void Hca::Impl::forget_sent_events() {
  std::erase_if(held, [](const Cq* cq) { return cq->held_until() == kNever; });
  next_held = kNever;
  for (const Cq* cq : held) next_held = std::min(next_held, cq->held_until());
}

bool Hca::has_news() const {
  return !impl_->touched_cqs.empty() || !impl_->qps_in_error.empty() ||
         !impl_->qps_at_last_wqe.empty() || !impl_->srqs_at_limit.empty();
}

TimeNs Hca::next_held_event() const { return impl_->next_held; }

bool Hca::publish_completions(TimeNs now) {
  Impl& impl = *impl_;
  for (size_t i = 0; i < impl.qps_in_error.size(); ++i)
    impl.endpoint.flush_posted(impl.qps_in_error[i]);
  impl.qps_in_error.clear();

  if (impl.next_held <= now)
    for (Cq* cq : impl.held)
      if (cq->held_until() <= now) cq->touch();

  bool again = false;
  impl.publishing.swap(impl.touched_cqs);
  for (Cq* cq : impl.publishing) cq->untouch();
  for (Cq* cq : impl.publishing) {
    if (!cq->publish(now)) {
      cq->touch();
      again = true;
    }
    if (cq->take_overrun()) impl.handle_overrun(*cq);
    if (cq->held_until() != kNever &&
        std::find(impl.held.begin(), impl.held.end(), cq) == impl.held.end())
      impl.held.push_back(cq);
  }
  impl.publishing.clear();
  impl.forget_sent_events();
  impl.send_due_events();
  return again || !impl.touched_cqs.empty();
}

}  // namespace rocemu::device
