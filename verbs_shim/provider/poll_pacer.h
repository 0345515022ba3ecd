// What to do about polls that find nothing. On a machine with fewer cores than pollers the NIC gets
// its turn only when a program that polls gives its own up, so after a few empty polls one yields;
// at once when it is the NIC's core that is kept.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocemu::provider {

class PollPacer {
 public:
  enum class Advice {
    kGoOn,
    kYield,
    kYieldAndLook,  // also look whether the NIC still is there
  };

  void on_completion() {
    if (empty_polls_.load(std::memory_order_relaxed) != 0) {
      empty_polls_.store(0, std::memory_order_relaxed);
    }
  }

  // `engine_here`: the NIC cannot run until this thread yields.
  Advice on_empty(bool engine_here) {
    const uint32_t count = empty_polls_.load(std::memory_order_relaxed) + 1;
    empty_polls_.store(count, std::memory_order_relaxed);
    if (count % kPollsPerLook == 0) return Advice::kYieldAndLook;
    return engine_here || count % kPollsPerYield == 0 ? Advice::kYield : Advice::kGoOn;
  }

 private:
  static constexpr uint32_t kPollsPerYield = 8;
  static constexpr uint32_t kPollsPerLook = 8192;  // a system call each time

  // Threads that poll the same CQ may lose each other's counts: it is advice.
  std::atomic<uint32_t> empty_polls_{0};
};

}  // namespace rocemu::provider
