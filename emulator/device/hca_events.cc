// Events of the HCA's objects, and the publication of completions.
#include <algorithm>

#include "base/verbs/numbers.h"
#include "emulator/device/hca_impl.h"

namespace rocemu::device {

void Hca::Impl::send_async_event(Context& context, uint64_t element, uint32_t type,
                                 uint32_t& written) {
  // A program that does not read its events loses those that find the pipe full.
  if (context.async_events->async_event(element, type)) ++written;
}

void Hca::Impl::on_qp_event(wire::Qpn qpn, transport::QpEvent event) noexcept {
  if (event == transport::QpEvent::path_migrated) {
    const auto found = qps_by_number.find(qpn.value);
    if (found != qps_by_number.end()) take_alternate_path(*found->second);
  }
  if (event == transport::QpEvent::last_wqe_reached ||
      event == transport::QpEvent::send_queue_drained) {
    deferred.qp_events.emplace_back(qpn, event);
  } else {
    send_qp_event(qpn, event);
  }
}

void Hca::Impl::send_qp_event(wire::Qpn qpn, transport::QpEvent event) {
  const auto found = qps_by_number.find(qpn.value);
  if (found == qps_by_number.end()) return;
  for (Qp* qp : found->second->openings)
    send_async_event(*qp->context, qp->spec.user_pointer, static_cast<uint32_t>(event),
                     qp->async_events_written);
}

// Sends the events that come after the completions they speak of.
void Hca::Impl::send_due_events() {
  for (const auto& [qpn, event] : deferred.qp_events) send_qp_event(qpn, event);
  deferred.qp_events.clear();
  for (Srq* srq : deferred.srqs_at_limit)
    send_async_event(srq->context(), srq->spec().user_pointer, verbs::async_event::kSrqLimitReached,
                     srq->async_events_written);
  deferred.srqs_at_limit.clear();
}

// The program may have posted a receive between the flush and the news of the state: the queues are
// flushed again once the state can be seen (rings.h, qp_state).
void Hca::Impl::on_qp_error(wire::Qpn qpn) noexcept {
  const auto found = qps_by_number.find(qpn.value);
  if (found == qps_by_number.end()) return;
  found->second->queues->show_state(transport::QpState::error);
  deferred.qps_in_error.push_back(qpn);
}

namespace {

// True when `body` completes to `cq` itself or, where it is an XRC_RECV QP, by an SRQ of its
// domain.
bool completes_to(const QpBody& body, const Cq& cq) {
  const auto uses = [&](const Qp* qp) {
    return qp->send_cq == &cq || qp->receive_cq == &cq ||
           (qp->srq != nullptr && qp->srq->cq == &cq);
  };
  if (std::ranges::any_of(body.openings, uses)) return true;
  return body.domain != nullptr && std::ranges::any_of(body.domain->srqs, [&](const auto& entry) {
           return entry.second->cq == &cq;
         });
}

}  // namespace

// A CQ that lost a completion is of no more use, nor are the QPs that complete to it (IBTA vol 1,
// 11.6.3.1: CQ error).
void Hca::Impl::handle_overrun(Cq& cq) {
  send_async_event(cq.context(), cq.user_pointer(), verbs::async_event::kCqError,
                   cq.async_events_written);
  for (const auto& [number, body] : qps_by_number) {
    if (!completes_to(*body, cq)) continue;
    const wire::Qpn qpn{number};
    if (endpoint->state(qpn) == transport::QpState::error ||
        endpoint->state(qpn) == transport::QpState::reset)
      continue;
    endpoint->fail(qpn);
    on_qp_error(qpn);
    on_qp_event(qpn, transport::QpEvent::fatal);
  }
}

bool Hca::has_news() const { return !impl_->cq_publisher.idle() || !impl_->deferred.empty(); }

TimeNs Hca::next_held_event() const { return impl_->cq_publisher.next_held_event(); }

bool Hca::publish_completions(TimeNs now) {
  // The others follow in the next turns.
  constexpr size_t kQpsAtOnce = 8;
  std::deque<wire::Qpn>& in_error = impl_->deferred.qps_in_error;
  for (size_t i = 0; i < kQpsAtOnce && !in_error.empty(); ++i) {
    impl_->endpoint->flush_posted(in_error.front());
    in_error.pop_front();
  }
  Cq* overrun = nullptr;
  const bool again = impl_->cq_publisher.publish(now, overrun);
  impl_->send_due_events();
  // Last, since its QPs' events come after the completions that they tell of, which are shown in
  // the next turn.
  if (overrun != nullptr) impl_->handle_overrun(*overrun);
  return again || overrun != nullptr;
}

}  // namespace rocemu::device
