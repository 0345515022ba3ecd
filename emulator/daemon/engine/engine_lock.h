// EngineLock guards the engine's state. The engine thread holds it while it is awake; while that
// sleeps, any thread that has a command for it may take it, and one that finds it taken wakes the
// engine instead. No thread owns it, unlike a mutex, so that a command which posts another one
// finds it taken, too.
#pragma once

#include <atomic>

namespace rocemu::daemon {

class EngineLock {
 public:
  // Waits until nobody holds it.
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
