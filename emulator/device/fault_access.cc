#include "emulator/device/fault_access.h"

#include <utility>

#include "base/verbs/numbers.h"
#include "emulator/device/hca_impl.h"

namespace rocemu::device {
namespace {

using transport::QpState;
using transport::Service;
using transport::WcStatus;

bool is_connected(Service service) {
  return service == Service::rc || service == Service::uc || service == Service::xrc_send ||
         service == Service::xrc_receive;
}

// Gives the first flushed request of a QP another status, while a QP is failed.
class OldestRequestTap final : public CompletionRingTap {
 public:
  OldestRequestTap(std::unique_ptr<CompletionRing> inner, wire::Qpn qpn, WcStatus status,
                   bool& found)
      : inner_(std::move(inner)), qpn_(qpn), status_(status), found_(found) {}

  uint32_t entries() const noexcept override { return inner_->entries(); }
  bool push(const transport::Completion& completion) noexcept override {
    const bool is_request = completion.qpn == qpn_ && completion.status == WcStatus::flush_error &&
                            completion.opcode < transport::WcOpcode::receive;
    if (!is_request || std::exchange(found_, true)) return inner_->push(completion);
    transport::Completion changed = completion;
    changed.status = status_;
    return inner_->push(changed);
  }
  bool show() noexcept override { return inner_->show(); }
  bool take_arm() noexcept override { return inner_->take_arm(); }
  std::unique_ptr<CompletionRing> release() noexcept override { return std::move(inner_); }

 private:
  std::unique_ptr<CompletionRing> inner_;
  wire::Qpn qpn_;
  WcStatus status_;
  bool& found_;
};

transport::SendQueue& untapped_sends(const QpBody& body) {
  if (body.tags != nullptr) return *body.tags;
  return body.queues->send();
}

}  // namespace

QpView FaultAccess::view_of(const QpBody& body) const {
  QpView view;
  view.qpn = body.qpn;
  view.sends = body.service != Service::xrc_receive;
  view.connected = is_connected(body.service);
  view.peer = body.paths.path.remote_gid;
  if (body.openings.empty()) return view;
  for (const auto& [id, context] : impl_.contexts)
    if (context.get() == body.openings.front()->context) {
      view.context = id;
      view.program = context->memory == nullptr ? 0 : context->memory->pid();
    }
  return view;
}

std::vector<ContextView> FaultAccess::contexts() const {
  std::vector<ContextView> views;
  for (const auto& [id, context] : impl_.contexts)
    views.push_back({id, context->memory == nullptr ? 0 : context->memory->pid()});
  return views;
}

std::vector<QpView> FaultAccess::qps() const {
  std::vector<QpView> views;
  for (const auto& entry : impl_.qps_by_number) views.push_back(view_of(*entry.second));
  return views;
}

std::optional<QpView> FaultAccess::qp(wire::Qpn qpn) const {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end()) return std::nullopt;
  return view_of(*found->second);
}

bool FaultAccess::fail_qp(wire::Qpn qpn, WcStatus status) {
  const auto found = impl_.qps_by_number.find(qpn.value);
  const QpState state = impl_.endpoint->state(qpn);
  if (found == impl_.qps_by_number.end() || state == QpState::error || state == QpState::reset)
    return false;
  Cq* cq = nullptr;
  for (const Qp* qp : found->second->openings) cq = qp->send_cq;
  bool told = false;
  if (cq != nullptr)
    cq->tap([&](auto ring) {
      return std::make_unique<OldestRequestTap>(std::move(ring), qpn, status, told);
    });
  impl_.endpoint->fail(qpn);
  impl_.on_qp_error(qpn);
  if (cq != nullptr) cq->untap();
  if (!told) impl_.on_qp_event(qpn, transport::QpEvent::fatal);
  return true;
}

void FaultAccess::flush_qp(wire::Qpn qpn) {
  if (impl_.endpoint->state(qpn) == QpState::reset) return;
  impl_.endpoint->fail(qpn);
  impl_.on_qp_error(qpn);
}

void FaultAccess::fail_cqs_of_qp(wire::Qpn qpn) {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end()) return;
  for (const Qp* qp : found->second->openings)
    for (Cq* cq : {qp->send_cq, qp->receive_cq})
      if (cq != nullptr) cq->fail();
}

void FaultAccess::fail_cqs_of_context(ContextId id) {
  if (const Context* context = impl_.find_context(id))
    context->cqs.for_each([](Cq& cq) { cq.fail(); });
}

void FaultAccess::close_channels(TimeNs now) {
  do {
    hca_.publish_completions(now);
  } while (!impl_.deferred.qps_in_error.empty());
  for (const auto& entry : impl_.contexts)
    entry.second->channels.for_each([](Channel& channel) { channel.events.reset(); });
}

void FaultAccess::tell_all(uint32_t event_type) {
  for (const auto& entry : impl_.contexts) entry.second->async_events->async_event(0, event_type);
}

void FaultAccess::send_event(ContextId id, uint64_t element, uint32_t event_type) {
  const Context* const context = impl_.find_context(id);
  if (context == nullptr) return;
  uint32_t* written = nullptr;
  context->qps.for_each([&](Qp& qp) {
    if (qp.spec.user_pointer == element) written = &qp.async_events_written;
  });
  context->srqs.for_each([&](Srq& srq) {
    if (srq.spec().user_pointer == element) written = &srq.async_events_written;
  });
  if (written == nullptr) return;
  auto* const tap = dynamic_cast<EventTap*>(context->async_events.get());
  EventChannel& events = tap == nullptr ? *context->async_events : tap->inner();
  if (events.async_event(element, event_type)) ++*written;
}

void FaultAccess::limit_rate(wire::Qpn qpn, std::optional<uint32_t> rate_kbps) {
  const auto found = impl_.qps_by_number.find(qpn.value);
  if (found == impl_.qps_by_number.end()) return;
  impl_.endpoint->limit_rate(qpn, {rate_kbps.value_or(found->second->attr.rate_limit)});
}

void FaultAccess::tap_rings(const TapRing& tap) {
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([&](Cq& cq) {
      if (!cq.tapped()) cq.tap(tap);
    });
}

void FaultAccess::untap_rings() {
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) {
      if (cq.tapped()) cq.untap();
    });
}

void FaultAccess::touch_rings() {
  for (const auto& entry : impl_.contexts)
    entry.second->cqs.for_each([](Cq& cq) {
      if (cq.tapped()) cq.mark_dirty();
    });
}

void FaultAccess::tap_sends(const TapSends& tap) {
  for (const auto& [number, body] : impl_.qps_by_number) {
    if (body->send_tap != nullptr || body->service == Service::xrc_receive) continue;
    body->send_tap = tap(body->qpn, untapped_sends(*body));
    impl_.endpoint->use_send_queue(body->qpn, *body->send_tap);
  }
}

void FaultAccess::untap_sends() {
  for (const auto& [number, body] : impl_.qps_by_number) {
    if (body->send_tap == nullptr) continue;
    impl_.endpoint->use_send_queue(body->qpn, untapped_sends(*body));
    body->send_tap.reset();
  }
}

void FaultAccess::tap_events(const TapEvents& tap) {
  for (const auto& [id, context] : impl_.contexts)
    if (dynamic_cast<EventTap*>(context->async_events.get()) == nullptr)
      context->async_events = tap(id, std::move(context->async_events));
}

void FaultAccess::untap_events() {
  for (const auto& entry : impl_.contexts)
    if (auto* const tap = dynamic_cast<EventTap*>(entry.second->async_events.get()))
      entry.second->async_events = tap->release();
}

}  // namespace rocemu::device
