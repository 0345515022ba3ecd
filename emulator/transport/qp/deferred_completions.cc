#include "emulator/transport/qp/deferred_completions.h"

#include <optional>
#include <utility>

#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

namespace {

std::optional<TraceEvent> cause_at_requester(WcStatus status) {
  switch (status) {
    case WcStatus::flush_error:
      return TraceEvent::request_flushed;
    case WcStatus::remote_access_error:
      return TraceEvent::remote_access_error;
    case WcStatus::remote_invalid_request_error:
      return TraceEvent::remote_invalid_request;
    case WcStatus::retry_exceeded_error:
      return TraceEvent::retries_exceeded;
    case WcStatus::rnr_retry_exceeded_error:
      return TraceEvent::rnr_retries_exceeded;
    default:
      return std::nullopt;
  }
}

std::optional<TraceEvent> cause_at_responder(WcStatus status) {
  switch (status) {
    case WcStatus::flush_error:
      return TraceEvent::receive_flushed;
    case WcStatus::local_length_error:
      return TraceEvent::receive_length_error;
    default:
      return std::nullopt;
  }
}

}  // namespace

void note_failed_completion(QpTally& tally, Side side, WcStatus status) {
  const bool requester = side == Side::requester;
  const auto value = static_cast<uint32_t>(status);
  tally.note(requester ? TraceEvent::request_failed : TraceEvent::receive_failed, value);
  if (const auto cause = requester ? cause_at_requester(status) : cause_at_responder(status))
    tally.note(*cause, value);
}

void DeferredCompletions::flush(Memory& memory) {
  if (!scatters_.empty()) {
    memory.flush_scatters(failed_);
    if (observer_ != nullptr) [[unlikely]]
      tell_placed();
    for (uint32_t tag : failed_) fail(tag);
    failed_.clear();
    scatters_.clear();
  }
  if (!kept_.empty()) [[unlikely]]
    kept_.clear();
  for (const Pending& pending : pending_) {
    const bool failed = pending.completion.status != WcStatus::success;
    const bool announced = pending.announce || failed;
    if (observer_ != nullptr) [[unlikely]]
      observer_->on_completion(pending.completion, announced);
    if (failed) [[unlikely]] {
      note_failed_completion(pending.qp->tally(), pending.side, pending.completion.status);
      gives_back_ |= pending.side == Side::requester;
    }
    if (announced) pending.queue->push(pending.completion);
  }
  pending_.clear();
}

// Those of a failed move are among `failed_`, in the order of their tags.
void DeferredCompletions::tell_placed() const {
  auto failed = failed_.begin();
  for (uint32_t tag = 0; tag < scatters_.size(); ++tag) {
    if (failed != failed_.end() && *failed == tag) {
      ++failed;
    } else {
      observer_->on_placed(scatters_[tag].qp->qpn(), scatters_[tag].psn);
    }
  }
}

void DeferredCompletions::fail(uint32_t tag) {
  const Scatter scatter = scatters_[tag];
  const Side side = side_of(scatter.kind);
  bool announced = false;
  if (scatter.kind == ScatterKind::ahead || scatter.kind == ScatterKind::response_ahead) {
    scatter.qp->on_scatter_failed(scatter.kind, scatter.psn, announced);
    return;
  }
  for (Pending& pending : pending_) {
    if (pending.qp != scatter.qp || pending.side != side || pending.scatters_before <= tag)
      continue;
    // The first completion after the scatter is the one that would have announced it, but for a
    // peer's WRITE, which announces nothing here.
    const bool own = !announced && scatter.kind != ScatterKind::remote_write;
    const bool succeeded = pending.completion.status == WcStatus::success;
    if (!own) {
      pending.completion.status = WcStatus::flush_error;  // also when it failed for a later cause
    } else if (succeeded) {
      pending.completion.status = WcStatus::local_protection_error;
    }
    if (succeeded)
      scatter.qp->tally().note(TraceEvent::completion_with_error,
                               static_cast<uint32_t>(pending.completion.status));
    pending.completion.inline_data.length_bytes = 0;
    announced = true;
  }
  scatter.qp->on_scatter_failed(scatter.kind, scatter.psn, announced);
}

void DeferredCompletions::flush_later(Qp& qp) {
  if (!std::exchange(qp.flushes_later, true)) to_flush_.push_back(&qp);
}

Qp* DeferredCompletions::take_to_flush() {
  flushed_now_ = 0;
  if (to_flush_.empty()) return nullptr;
  Qp* const qp = to_flush_.front();
  to_flush_.pop_front();
  qp->flushes_later = false;
  return qp;
}

void DeferredCompletions::forget(Qp& qp) {
  if (std::exchange(qp.flushes_later, false)) std::erase(to_flush_, &qp);
  std::erase_if(pending_, [&](const Pending& pending) { return pending.qp == &qp; });
}

}  // namespace rocemu::transport
