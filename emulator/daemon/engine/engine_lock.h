// Who may touch the engine's state: the engine thread while it is awake, and while it sleeps
// whoever has a command for it. Whoever finds the token taken rings the engine instead. Not owned
// by a thread, so that a command which posts another one finds the token taken, too.
#pragma once

#include <atomic>

namespace rocemu::daemon {

class EngineLock {
 public:
  // Waits for it.
  void lock() noexcept {
    while (locked_.exchange(1, std::memory_order_acquire) != 0)
      locked_.wait(1, std::memory_order_relaxed);
  }
  bool try_lock() noexcept { return locked_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() noexcept {
    locked_.store(0, std::memory_order_release);
    locked_.notify_one();
  }

 private:
  std::atomic<int> locked_{0};
};

}  // namespace rocemu::daemon
