// CommandQueue holds the calls that other threads want the engine thread to make. Its users bound
// it: a session has at most one call under way.
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

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

  // The engine thread makes the calls posted so far, in order.
  void run() {
    {
      const std::lock_guard lock(mutex_);
      running_.swap(tasks_);
      pending_.store(false);
    }
    for (Task& task : running_) run_one(task);
    running_.clear();
  }

 private:
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
  std::vector<Task> running_;  // only the engine thread touches it; keeps its memory
};

}  // namespace rocemu::daemon
