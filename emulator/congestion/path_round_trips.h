// PathRoundTrips is what the QPs of a device know of one path together. Each QP has measured a
// shortest round trip of its own, which has the queues in it that were there all the time it has
// measured: those of QPs that began beside it, say. So the shortest of all is nearest to the path's
// own, and QPs that all go by one and the same number are not kept apart by what each has happened
// to measure.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "base/time.h"

namespace rocemu::congestion {

class PathRoundTrips {
 public:
  // The shortest of any QP, until none is left that has measured; kNever: none has.
  TimeNs shortest_ns() const { return shortest_ns_; }
  // The mean of those of the QPs that are there. Precondition: one has measured.
  double mean_ns() const { return static_cast<double>(sum_ns_) / qps_; }

 private:
  friend class PathShare;

  void replace(TimeNs before_ns, TimeNs now_ns) {
    if (before_ns != kNever) {
      sum_ns_ -= before_ns;
      --qps_;
    }
    if (now_ns != kNever) {
      sum_ns_ += now_ns;
      ++qps_;
    }
    shortest_ns_ = qps_ == 0 ? kNever : std::min(shortest_ns_, now_ns);
  }

  TimeNs shortest_ns_ = kNever;
  TimeNs sum_ns_ = 0;  // of the shortest ones of so many QPs
  unsigned qps_ = 0;
};

// PathShare is a QP's part in them, which ends with it.
class PathShare {
 public:
  PathShare() = default;
  explicit PathShare(std::shared_ptr<PathRoundTrips> path) : path_(std::move(path)) {}
  PathShare(PathShare&& other) noexcept
      : path_(std::move(other.path_)), shortest_ns_(std::exchange(other.shortest_ns_, kNever)) {}
  PathShare& operator=(PathShare&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(shortest_ns_, other.shortest_ns_);
    return *this;
  }
  ~PathShare() {
    if (path_ != nullptr) path_->replace(shortest_ns_, kNever);
  }

  // The QP's own shortest round trip is that from now on.
  void note(TimeNs shortest_ns) {
    if (path_ == nullptr) return;
    path_->replace(shortest_ns_, shortest_ns);
    shortest_ns_ = shortest_ns;
  }
  // Null: the QP has not joined a path.
  const PathRoundTrips* path() const { return path_.get(); }

 private:
  std::shared_ptr<PathRoundTrips> path_;
  TimeNs shortest_ns_ = kNever;
};

}  // namespace rocemu::congestion
