#include "verbs_shim/checker/memory/nic_writes.h"

#include <algorithm>

namespace rocemu::check {
namespace {

bool is_open_to_peers(int access) {
  return (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)) != 0;
}

bool meet(std::span<const Span> spans, const Span& other) {
  return std::any_of(spans.begin(), spans.end(),
                     [&other](const Span& span) { return span.meets(other); });
}

bool awaits(const Context& context, WorkQueue& queue, std::span<const Span> spans,
            const Request* but) {
  for (size_t i = 0; i < queue.size(); ++i) {
    Request& request = queue.at(i);
    if (&request == but || !request.writes_locally()) continue;
    const std::vector<Span>* const targets = find_spans(context, request);
    if (targets == nullptr) continue;
    if (std::any_of(targets->begin(), targets->end(),
                    [spans](const Span& target) { return meet(spans, target); }))
      return true;
  }
  return false;
}

// Another thread may hold this queue's lock and wait for the one that the caller holds.
bool may_await(const Context& context, WorkQueue& queue, std::span<const Span> spans,
               WorkQueue* locked, const Request* but) {
  if (&queue == locked) return awaits(context, queue, spans, but);
  const std::unique_lock lock(queue.lock, std::try_to_lock);
  return !lock.owns_lock() || awaits(context, queue, spans, but);
}

}  // namespace

uint64_t NicWrites::now() const {
  std::lock_guard lock(lock_);
  return count_;
}

void NicWrites::add(std::span<const Span> spans) {
  std::lock_guard lock(lock_);
  for (const Span& span : spans) writes_[count_++ % kRemembered] = span;
}

bool NicWrites::may_meet(std::span<const Span> spans, uint64_t since) const {
  std::lock_guard lock(lock_);
  if (count_ - since > kRemembered) return true;
  for (uint64_t i = since; i < count_; ++i) {
    if (meet(spans, writes_[i % kRemembered])) return true;
  }
  return false;
}

bool may_be_written_by_peers(const Model& model, std::span<const Span> spans) {
  for (const std::shared_ptr<Object>& object : model.all()) {
    if (object->kind != ROCEMU_CHECK_MR) continue;
    const auto& region = static_cast<const MemoryRegion&>(*object);
    if (!is_open_to_peers(region.access)) continue;
    const bool is_everywhere = region.address == 0 && region.bytes == UINT64_MAX;
    if (is_everywhere || meet(spans, span_of(region))) return true;
  }
  return false;
}

bool may_be_awaited(const Model& model, std::span<const Span> spans, WorkQueue* locked,
                    const Request* but) {
  for (const std::shared_ptr<Object>& object : model.all()) {
    if (object->kind == ROCEMU_CHECK_QP) {
      auto& qp = static_cast<QueuePair&>(*object);
      if (may_await(*qp.context, qp.sends, spans, locked, but)) return true;
      if (may_await(*qp.context, qp.receives, spans, locked, but)) return true;
    } else if (object->kind == ROCEMU_CHECK_SRQ) {
      auto& srq = static_cast<SharedReceiveQueue&>(*object);
      if (may_await(*srq.context, srq.receives, spans, locked, but)) return true;
    }
  }
  return false;
}

}  // namespace rocemu::check
