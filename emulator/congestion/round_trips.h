// RoundTrips says what the round trips of a QP tell of the queues on its path, which make them
// longer than the shortest: of those of all QPs that have joined the path, where the QP has.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "base/time.h"
#include "emulator/congestion/path_round_trips.h"

namespace rocemu::congestion {

class RoundTrips {
 public:
  void sample(TimeNs rtt_ns) {
    before_newest_ns_ = newest_ns_;
    newest_ns_ = std::max<TimeNs>(rtt_ns, 1);
    if (newest_ns_ < shortest_ns_) {
      shortest_ns_ = newest_ns_;
      share_.note(shortest_ns_);
    }
    lately_ns_ = std::min(lately_ns_, newest_ns_);
    if (++samples_ < kFewSamples) return;
    standing_ns_ = lately_ns_;
    lately_ns_ = kNever;
    samples_ = 0;
  }

  // Null: the QP goes by its own. What was measured before is of another path, and forgotten.
  void join(std::shared_ptr<PathRoundTrips> path) {
    *this = {};
    share_ = PathShare(std::move(path));
  }

  bool known() const { return shortest_ns_ != kNever; }
  // The QP's own. Precondition: known().
  TimeNs shortest_ns() const { return shortest_ns_; }
  // By what QPs on a path pace themselves, one like the other; but one whose peer answers late, or
  // holds its answers back, makes the others no slower than that. Precondition: known().
  double common_ns() const {
    const double own_ns = static_cast<double>(shortest_ns_);
    return share_.path() ? std::min(share_.path()->mean_ns(), kMostOfOwn * own_ns) : own_ns;
  }

  // True when the last two round trips were longer than the shortest, or there is none to compare
  // with.
  bool queue_seen() const {
    if (!known()) return true;
    const TimeNs empty_ns = without_queue_ns();
    return std::min(newest_ns_, before_newest_ns_) > empty_ns + empty_ns / 25;
  }

  // Even the best of kFewSamples lately was longer than the shortest by so many times that.
  double standing_queue() const {
    const TimeNs empty_ns = without_queue_ns();
    if (!known() || standing_ns_ <= empty_ns) return 0;
    return static_cast<double>(standing_ns_ - empty_ns) / static_cast<double>(empty_ns);
  }

 private:
  static constexpr unsigned kFewSamples = 4;
  static constexpr double kMostOfOwn = 4;

  TimeNs without_queue_ns() const {
    return share_.path() ? share_.path()->shortest_ns() : shortest_ns_;
  }

  TimeNs shortest_ns_ = kNever;
  TimeNs newest_ns_ = 0;
  TimeNs before_newest_ns_ = 0;
  TimeNs standing_ns_ = 0;     // the shortest of the last kFewSamples that are complete …
  TimeNs lately_ns_ = kNever;  // … and of those that are not
  unsigned samples_ = 0;
  PathShare share_;
};

}  // namespace rocemu::congestion
