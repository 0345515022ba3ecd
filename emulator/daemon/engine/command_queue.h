// CommandQueue holds the calls that other threads want the engine thread to make. Its users bound
// it: a session has at most one call under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "emulator/daemon/engine/pace/turn_budget.h"
#include "emulator/daemon/engine/task.h"

namespace rocemu::daemon {

class CommandQueue {
 public:
  // Any thread may post; it then looks whether the engine sleeps.
  void post(Task task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    pending_.store(true);
  }

  // The engine thread asks in every turn, so this is one look at a flag.
  bool pending() const noexcept { return pending_.load(); }

  // The engine thread makes the calls posted so far, in order: one, and more until the turn's time
  // is spent. The rest stays pending.
  void run(TurnBudget& budget) {
    if (running_.empty()) take_posted();
    while (next_ < running_.size()) {
      run_one(running_[next_++]);
      budget.charge(TurnBudget::kPiecesPerLook);  // it may take long
      if (budget.spent()) break;
    }
    if (next_ < running_.size()) return pending_.store(true);
    running_.clear();
    next_ = 0;
  }

 private:
  void take_posted() {
    const std::lock_guard lock(mutex_);
    running_.swap(tasks_);
    pending_.store(false);
  }

  // Without memory to answer with, a call's program gets no answer; the others go on.
  static void run_one(Task& task) {
    try {
      task();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
  }

  std::mutex mutex_;
  std::atomic<bool> pending_{false};
  std::vector<Task> tasks_;
  // Only the engine thread touches these.
  std::vector<Task> running_;  // keeps its memory
  size_t next_ = 0;            // the first of them that has not been run
};

}  // namespace rocemu::daemon
