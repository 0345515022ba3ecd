#include "verbs_shim/checker/memory/posted_targets.h"

#include <algorithm>

namespace rocemu::check {
namespace {

constexpr size_t kSinksMax = 4096;
constexpr int kSinkRequests = 3;
// The number of neighbours that are looked at: the cost of a request has a bound.
constexpr int kNeighbours = 64;

bool is_request(const Target& target, const WorkQueue& queue, const Request& request) {
  return target.queue == &queue && target.index == request.index;
}

}  // namespace

void PostedTargets::note_name(const WorkQueue& queue, uintptr_t place, uint64_t wr_id) {
  Naming& naming = naming_[&queue];
  if (naming.has_last && naming.last_place != place) {
    (naming.last_wr_id == wr_id ? naming.repeats : naming.differs) = true;
  }
  naming.has_last = true;
  naming.last_place = place;
  naming.last_wr_id = wr_id;
}

bool PostedTargets::names_places(const WorkQueue& queue) const {
  const auto found = naming_.find(&queue);
  return found != naming_.end() && found->second.differs && !found->second.repeats;
}

void PostedTargets::add(const WorkQueue& queue, const Request& request,
                        std::span<const Span> spans) {
  std::lock_guard lock(lock_);
  for (const Span& span : spans) {
    note_name(queue, span.from, request.wr_id);
    if (sinks_.contains(span.from)) continue;
    const auto [first, last] = targets_.equal_range(span.from);
    int here = 1;
    for (auto it = first; it != last && here < kSinkRequests; ++it) ++here;
    if (here == kSinkRequests) {
      if (sinks_.size() == kSinksMax) sinks_.clear();
      sinks_.insert(span.from);
    }
    longest_bytes_ = std::max(longest_bytes_, span.bytes);
    targets_.emplace(span.from,
                     Target{span, &queue, request.index, request.wr_id, request.posted_at,
                            request.posted_by, spans.size() == 1, request.is_send});
  }
}

void PostedTargets::remove(const WorkQueue& queue, const Request& request,
                           std::span<const Span> spans) {
  std::lock_guard lock(lock_);
  for (const Span& span : spans) {
    const auto [first, last] = targets_.equal_range(span.from);
    for (auto it = first; it != last; ++it) {
      if (!is_request(it->second, queue, request)) continue;
      targets_.erase(it);
      break;
    }
  }
}

void PostedTargets::drop(const WorkQueue& queue, const Request& request) {
  std::lock_guard lock(lock_);
  std::erase_if(targets_, [&queue, &request](const auto& entry) {
    return is_request(entry.second, queue, request);
  });
}

bool PostedTargets::is_sink(std::span<const Span> spans) const {
  std::lock_guard lock(lock_);
  return std::any_of(spans.begin(), spans.end(),
                     [this](const Span& span) { return sinks_.contains(span.from); });
}

bool PostedTargets::is_mistake(const Target& own, const Target& other) const {
  if (sinks_.contains(own.span.from) || sinks_.contains(other.span.from)) return false;
  const bool is_same = own.span.from == other.span.from && own.span.bytes == other.span.bytes;
  if (!is_same) return true;
  if (!own.is_whole || !other.is_whole) return false;
  return own.wr_id != other.wr_id || own.queue != other.queue || names_places(*own.queue);
}

std::optional<Target> PostedTargets::other(const WorkQueue& queue, const Request& request,
                                           std::span<const Span> spans,
                                           size_t written_bytes) const {
  std::lock_guard lock(lock_);
  for (const Span& element : spans) {
    const Span written = {element.from, std::min(element.bytes, written_bytes)};
    if (written.bytes == 0) break;
    written_bytes -= written.bytes;
    const Target own = {element,  &queue, request.index,    request.wr_id,
                        kNoPlace, 0,      spans.size() == 1};
    auto it = targets_.lower_bound(written.to());
    for (int looked = 0; it != targets_.begin() && looked < kNeighbours; ++looked) {
      --it;
      if (it->first + longest_bytes_ <= written.from) break;
      const Target& target = it->second;
      if (is_request(target, queue, request) || !target.span.meets(written)) continue;
      if (is_mistake(own, target)) return target;
    }
  }
  return std::nullopt;
}

void PostedTargets::forget(const WorkQueue& queue) {
  std::lock_guard lock(lock_);
  naming_.erase(&queue);
  std::erase_if(targets_, [&queue](const auto& entry) { return entry.second.queue == &queue; });
}

}  // namespace rocemu::check
