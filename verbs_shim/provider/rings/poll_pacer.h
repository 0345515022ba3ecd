// Decides what to do about polls that find nothing. On a machine with fewer cores than pollers the
// NIC gets its turn only when a program that polls gives its own up, so after a few empty polls one
// yields: at once when it is the NIC's core that is kept, rarely when nobody else seems to want the
// core.
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
    const bool alone = unchanged_.load(std::memory_order_relaxed) >= kUnchangedAlone;
    const uint32_t polls_per_yield = engine_here ? 1 : (alone ? kPollsAlone : kPollsPerYield);
    return count % polls_per_yield == 0 ? Advice::kYield : Advice::kGoOn;
  }

  // True when on_yield() wants to hear of the next yield. The first ones that let the NIC run it
  // leaves alone: in a ping-pong each of them is in the way of the message.
  bool times_yields(bool engine_here) const {
    return !engine_here || empty_polls_.load(std::memory_order_relaxed) > kYieldsInVain;
  }

  // After a yield that took `yield_ns`. True when the NIC has waited for this core through so many
  // of them that only sleeping, however shortly, lets it run: a thread that has had less than its
  // share of the core so far is chosen again, and yielding does not change that.
  bool on_yield(bool engine_waits, uint64_t yield_ns) {
    const bool changed = yield_ns >= kShortestChangeNs;
    unchanged_.store(changed ? 0 : unchanged_.load(std::memory_order_relaxed) + 1,
                     std::memory_order_relaxed);
    const bool in_vain = engine_waits && !changed;
    const uint32_t count = in_vain ? yields_in_vain_.load(std::memory_order_relaxed) + 1 : 0;
    const bool enough = count == kYieldsInVain;
    yields_in_vain_.store(enough ? 0 : count, std::memory_order_relaxed);
    return enough;
  }

 private:
  static constexpr uint32_t kPollsPerYield = 8;
  static constexpr uint32_t kPollsAlone = 64;      // where nobody else seems to be
  static constexpr uint32_t kUnchangedAlone = 8;   // yields in a row after which that is so
  static constexpr uint32_t kPollsPerLook = 8192;  // a system call each time
  static constexpr uint32_t kYieldsInVain = 32;
  static constexpr uint64_t kShortestChangeNs = 700;  // to another thread and back

  // Threads that poll the same CQ may lose each other's counts: it is advice.
  std::atomic<uint32_t> empty_polls_{0};
  std::atomic<uint32_t> yields_in_vain_{0};
  std::atomic<uint32_t> unchanged_{0};  // yields in a row that changed to no other thread
};

}  // namespace rocemu::provider
