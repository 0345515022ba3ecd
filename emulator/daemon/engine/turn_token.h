// Who may touch the engine's state: the engine thread while it is awake, and while it sleeps
// whoever has a command for it. Whoever finds the token taken rings the engine instead. Not owned
// by a thread, so that a command which posts another one finds the token taken, too.
#pragma once

#include <atomic>

namespace rocemu::daemon {

class TurnToken {
 public:
  // Waits for it.
  void take() noexcept {
    while (taken_.exchange(1, std::memory_order_acquire) != 0)
      taken_.wait(1, std::memory_order_relaxed);
  }
  bool try_take() noexcept { return taken_.exchange(1, std::memory_order_acquire) == 0; }
  void give_back() noexcept {
    taken_.store(0, std::memory_order_release);
    taken_.notify_one();
  }

 private:
  std::atomic<int> taken_{0};
};

}  // namespace rocemu::daemon
