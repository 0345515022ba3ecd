#include "verbs_shim/checker/model/work_queue.h"

#include <cassert>
#include <utility>

namespace rocemu::check {

Request& WorkQueue::push() {
  if (count_ == ring_.size()) grow();
  Request& request = ring_[(first_ + count_) & (ring_.size() - 1)];
  ++count_;
  std::vector<ibv_sge> sges = std::move(request.sges);
  std::vector<Span> spans = std::move(request.spans);
  sges.clear();
  request = {};
  request.sges = std::move(sges);
  request.spans = std::move(spans);
  request.index = posted_++;
  return request;
}

void WorkQueue::drop_last() {
  assert(count_ > 0);
  --count_;
  --posted_;
}

void WorkQueue::clear() {
  first_ = 0;
  count_ = 0;
  each_completes = false;
}

void WorkQueue::pop_front() {
  assert(count_ > 0);
  first_ = (first_ + 1) & (ring_.size() - 1);
  --count_;
}

void WorkQueue::grow() {
  constexpr size_t kFirstSize = 16;
  std::vector<Request> larger(ring_.empty() ? kFirstSize : ring_.size() * 2);
  for (size_t i = 0; i < count_; ++i) larger[i] = std::move(at(i));
  ring_ = std::move(larger);
  first_ = 0;
}

}  // namespace rocemu::check
