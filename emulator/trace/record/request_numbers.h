// The requests of one send queue between being taken and being over, and the PSNs that each of them
// has: tells whose a packet is.
#pragma once

#include <cstdint>
#include <deque>

#include "emulator/wire/types.h"

namespace rocemu::trace {

class RequestNumbers {
 public:
  RequestNumbers() = default;
  // `in_flight` requests were taken before anybody looked: they are the first ones.
  explicit RequestNumbers(uint32_t in_flight) : taken_(in_flight) {}

  // Returns the number of the request. `sends`: packets of it will leave.
  uint32_t on_taken(bool sends) {
    ++taken_;
    if (sends && to_start_.size() < kMax) to_start_.push_back(taken_);
    return taken_;
  }
  // A packet leaves for the first time. `starts`: it is the first one of its request.
  uint32_t on_sent(wire::Psn psn, bool starts) {
    if (starts && !to_start_.empty()) {
      if (under_way_.size() < kMax) under_way_.push_back({psn, to_start_.front()});
      to_start_.pop_front();
    }
    return under_way_.empty() ? 0 : under_way_.back().number;
  }
  // Returns the request whose packet has this PSN; 0: unknown.
  uint32_t find(wire::Psn psn) const {
    for (auto it = under_way_.rbegin(); it != under_way_.rend(); ++it)
      if (!psn.before(it->first_psn)) return it->number;
    return 0;
  }
  // Requests are over in the order in which they were taken. Returns the number of this one; 0:
  // none is under way.
  uint32_t on_over() {
    if (over_ == taken_) return 0;
    ++over_;
    while (!to_start_.empty() && is_over(to_start_.front())) to_start_.pop_front();
    // The last one stays, for packets that are sent again after it.
    while (under_way_.size() > 1 && is_over(under_way_[1].number)) under_way_.pop_front();
    return over_;
  }
  // What was under way is over without being told.
  void forget() {
    over_ = taken_;
    to_start_.clear();
    under_way_.clear();
  }
  uint32_t taken() const { return taken_; }

 private:
  // More are not under way at a time: as many as a queue may hold.
  static constexpr size_t kMax = 65536;

  struct UnderWay {
    wire::Psn first_psn;
    uint32_t number;
  };
  bool is_over(uint32_t number) const { return static_cast<int32_t>(over_ - number) >= 0; }

  uint32_t taken_ = 0;
  uint32_t over_ = 0;
  std::deque<uint32_t> to_start_;
  std::deque<UnderWay> under_way_;
};

}  // namespace rocemu::trace
