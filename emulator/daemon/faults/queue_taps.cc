#include "emulator/daemon/faults/queue_taps.h"

#include <algorithm>
#include <utility>

#include "base/verbs/numbers.h"

namespace rocemu::daemon {

using fault::Kind;
using fault::What;

Who who_has(device::Hca& hca, wire::Qpn qpn) {
  Who who{.device = hca.config().index, .qpn = qpn.value};
  const auto view = device::FaultAccess(hca).qp(qpn);
  if (!view) return who;
  who.program = view->program;
  if (view->connected) who.peer = view->peer;
  return who;
}

bool CompletionTap::push(const transport::Completion& completion) noexcept {
  const Who who = who_has(hca_, completion.qpn);
  transport::Completion shown = completion;
  const auto changed = faults_.strike(Kind::completion_status, who, [&](const What& what) {
    return !what.from || *what.from == static_cast<uint8_t>(completion.status);
  });
  if (changed) {
    shown.status = static_cast<transport::WcStatus>(changed->status);
    if (changed->status != 0) shown.inline_data.length_bytes = 0;
    if (changed->status != 0 && completion.status == transport::WcStatus::success)
      hca_.endpoint().note_late_error(shown);
  }
  const auto late = faults_.strike(Kind::completion_late, who, [](const What&) { return true; });
  if (!late && held_.empty()) return inner_->push(shown);
  // Completions behind a late one are late as well: a CQ has one order.
  TimeNs due_ns = faults_.now_ns() + (late ? late->delay_ns : 0);
  if (!held_.empty()) due_ns = std::max(due_ns, held_.back().due_ns);
  if (held_.size() >= kMaxHeld) hand_on();
  held_.push_back({shown, due_ns});
  if (held_.size() == 1) faults_.show_at(who.device, due_ns);
  return !std::exchange(lost_, false);
}

// Hands on the first of the completions held. A QP that was destroyed or reset meanwhile completes
// nothing more; changes of a list of tags are no QP's.
bool CompletionTap::hand_on() {
  const transport::Completion completion = held_.front().completion;
  held_.pop_front();
  if (completion.qpn.value != 0 &&
      hca_.endpoint().state(completion.qpn) == transport::QpState::reset)
    return true;
  const bool room = inner_->push(completion);
  lost_ |= !room;
  return room;
}

bool CompletionTap::show() noexcept {
  const TimeNs now_ns = faults_.now_ns();
  const bool is_due = !held_.empty() && held_.front().due_ns <= now_ns;
  while (!held_.empty() && held_.front().due_ns <= now_ns) hand_on();
  if (is_due && !held_.empty()) faults_.show_at(hca_.config().index, held_.front().due_ns);
  return inner_->show();
}

std::unique_ptr<device::CompletionRing> CompletionTap::release() noexcept {
  while (!held_.empty()) hand_on();
  return std::move(inner_);
}

bool RequestTap::pop(transport::SendWork& work) noexcept {
  if (!inner().pop(work)) return false;
  const auto status = faults_.on_request(who_has(hca_, qpn_));
  if (status && work.fault == transport::WcStatus::success) work.fault = *status;
  return true;
}

bool AsyncEventTap::async_event(uint64_t element, uint32_t event_type) noexcept {
  using namespace verbs::async_event;
  const bool is_limit = event_type == kSrqLimitReached;
  if (!is_limit && event_type != kQpLastWqeReached) return inner().async_event(element, event_type);
  const auto about = [&](const What& what) {
    return what.event == fault::kAny || what.event == (is_limit ? "srq-limit" : "last-wqe");
  };
  // An event that is not written is not counted among those that the program has to acknowledge.
  if (faults_.strike(Kind::event_lost, who_, about)) return false;
  const auto late = faults_.strike(Kind::event_late, who_, about);
  if (!late) return inner().async_event(element, event_type);
  faults_.send_at({who_.device, context_, element, event_type}, faults_.now_ns() + late->delay_ns);
  return false;
}

}  // namespace rocemu::daemon
