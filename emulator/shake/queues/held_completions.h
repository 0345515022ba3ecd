// Completions that are held back, in the order in which they came. Those of one work queue leave in
// that order (IBTA vol 1, 10.8.5); of different ones, in any.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "emulator/shake/common/dice.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::shake {

// The work queue that a completion is of: all tag-matching completions of a CQ count as one.
uint64_t work_queue_of(const transport::Completion& completion);

class HeldCompletions {
 public:
  size_t size() const { return held_.size(); }
  bool empty() const { return held_.empty(); }
  // The time at which the newest of the work queue is due; 0 when none is held.
  TimeNs newest_due(uint64_t work_queue) const;
  void add(const transport::Completion& completion, uint64_t work_queue, TimeNs due);
  // The time at which the next is due; kNever when there is none.
  TimeNs next_due() const;

  // Hands over what is due, work queues mixed at random.
  template <class Take>
  void release(TimeNs now, Dice& dice, Take take) {
    sort_out(now);
    while (!due_.empty()) {
      const size_t chosen = dice.below(due_.size());
      Due& queue = due_[chosen];
      take(queue.completions[queue.taken++]);
      if (queue.taken < queue.completions.size()) continue;
      std::swap(queue, due_.back());
      due_.pop_back();
    }
  }

 private:
  struct Held {
    transport::Completion completion;
    uint64_t work_queue;
    TimeNs due;
  };
  // The completions of one work queue that are due.
  struct Due {
    uint64_t work_queue;
    std::vector<transport::Completion> completions;
    size_t taken = 0;
  };

  void sort_out(TimeNs now);
  void find_newest();

  std::vector<Held> held_;
  std::unordered_map<uint64_t, TimeNs> newest_;  // when the newest of each work queue is due
  std::vector<Due> due_;                         // completions of the release under way
};

}  // namespace rocemu::shake
