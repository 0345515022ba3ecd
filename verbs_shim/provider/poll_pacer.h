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

  // After a yield of `yield_ns`. True when the NIC has waited for this core through so many of them
  // that only sleeping, however shortly, lets it run: a thread that has had less than its share of
  // the core so far is chosen again, and yielding does not change that.
  bool yields_in_vain(bool engine_waits, uint64_t yield_ns) {
    const bool in_vain = engine_waits && yield_ns < kShortestChangeNs;
    const uint32_t count = in_vain ? yields_in_vain_.load(std::memory_order_relaxed) + 1 : 0;
    const bool enough = count == kYieldsInVain;
    yields_in_vain_.store(enough ? 0 : count, std::memory_order_relaxed);
    return enough;
  }

 private:
  static constexpr uint32_t kPollsPerYield = 8;
  static constexpr uint32_t kPollsPerLook = 8192;  // a system call each time

  static constexpr uint32_t kYieldsInVain = 32;
  static constexpr uint64_t kShortestChangeNs = 700;  // to another thread and back

  // Threads that poll the same CQ may lose each other's counts: it is advice.
  std::atomic<uint32_t> empty_polls_{0};
  std::atomic<uint32_t> yields_in_vain_{0};
};

}  // namespace rocemu::provider
