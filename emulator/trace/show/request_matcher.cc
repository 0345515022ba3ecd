#include "emulator/trace/show/request_matcher.h"

#include <algorithm>

namespace rocemu::trace {

RequestMatcher::Queue RequestMatcher::queue_of(const Record& record) {
  const bool is_receive = (record.flags & flag::kReceiveQueue) != 0;
  if (is_receive && (record.flags & flag::kShared) != 0 && record.qpn == 0)
    return {record.device, 0, Side::shared_receives};
  return {record.device, record.qpn, is_receive ? Side::receives : Side::sends};
}

At& RequestMatcher::place_of(Request& request, Kind kind) {
  switch (kind) {
    case Kind::posted:
      return request.posted;
    case Kind::taken:
      return request.taken;
    case Kind::completion_polled:
      return request.polled;
    default:
      return request.pushed;
  }
}

At RequestMatcher::add(Known& queue, const Record& record, At qp) {
  const auto at = static_cast<At>(story_.requests.size());
  Request& request = story_.requests.emplace_back();
  request.qp = qp;
  request.is_receive = (record.flags & flag::kReceiveQueue) != 0;
  if (qp != kNowhere) story_.qps[qp].requests.push_back(at);
  if (record.request != 0) queue.by_number[record.request] = at;
  drop_polled(queue);
  queue.open.push_back(at);
  if (!request.is_receive) queue.unanswered.push_back(at);
  return at;
}

void RequestMatcher::drop_polled(Known& queue) const {
  while (queue.first_open < queue.open.size() &&
         story_.requests[queue.open[queue.first_open]].polled != kNowhere)
    ++queue.first_open;
}

// By its number, or, where the record does not have it, the oldest one with its wr_id.
At RequestMatcher::find(Known& queue, const Record& record) const {
  const auto is_free = [&](At at) {
    return place_of(story_.requests[at], record.kind) == kNowhere;
  };
  if (record.request != 0) {
    const auto found = queue.by_number.find(record.request);
    return found != queue.by_number.end() && is_free(found->second) ? found->second : kNowhere;
  }
  if (record.kind == Kind::posted) return kNowhere;
  drop_polled(queue);
  const size_t end = std::min(queue.open.size(), queue.first_open + kMaxLookedAt);
  for (size_t i = queue.first_open; i < end; ++i) {
    const At at = queue.open[i];
    const At first = story_.requests[at].first();
    if (first != kNowhere && story_.record(first).wr_id == record.wr_id && is_free(at)) return at;
  }
  return kNowhere;
}

void RequestMatcher::take(At at, At qp) {
  const Record& record = story_.record(at);
  switch (record.kind) {
    case Kind::posted:
    case Kind::taken:
    case Kind::completion_pushed:
    case Kind::completion_polled:
    case Kind::completion_lost:
      break;
    default:
      return;
  }
  Known& queue = known(record);
  At request = find(queue, record);
  // What was posted to an SRQ may have been recorded there, or with the QP that has taken it.
  if (request == kNowhere && (record.flags & flag::kShared) != 0 && qp != kNowhere)
    if (const auto shared = queues_.find({record.device, 0, Side::shared_receives});
        shared != queues_.end())
      request = find(shared->second, record);
  if (request == kNowhere) request = add(queue, record, qp);
  Request& it = story_.requests[request];
  place_of(it, record.kind) = at;
  if (it.qp == kNowhere && qp != kNowhere) {
    it.qp = qp;
    story_.qps[qp].requests.push_back(request);
  }
}

void RequestMatcher::on_acknowledged(At at, At qp) {
  const Record& record = story_.record(at);
  const Qp& owner = story_.qps[qp];
  Known& queue = queues_[{owner.device, owner.qpn, Side::sends}];
  while (queue.first_unanswered < queue.unanswered.size()) {
    Request& request = story_.requests[queue.unanswered[queue.first_unanswered]];
    const uint32_t number = story_.record(request.first()).request;
    // Numbers wrap: what lies ahead is not answered yet.
    if (static_cast<int32_t>(number - record.request) > 0) break;
    // One that has its completion was told of by that, and is not answered once more.
    if (request.pushed == kNowhere) request.acknowledged = at;
    ++queue.first_unanswered;
  }
}

void RequestMatcher::add_packet(const Record& record, At qp, At packet) {
  if (record.request == 0) return;
  const Qp& owner = story_.qps[qp];
  const Known& queue = queues_[{owner.device, owner.qpn, Side::sends}];
  const auto found = queue.by_number.find(record.request);
  if (found == queue.by_number.end()) return;
  story_.packets[packet].request = found->second;
  story_.requests[found->second].packets.push_back(packet);
}

}  // namespace rocemu::trace
