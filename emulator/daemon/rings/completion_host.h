// CompletionHost is what the completion rings ask of the NIC that fills them: the time that
// completions are stamped with, and to remember that a program which polls on the NIC's own CPU can
// go on. Such a program needs that CPU, so the NIC yields it (engine/pace/idle_policy.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {

class CompletionHost {
 public:
  using Clock = TimeNs (*)();

  explicit CompletionHost(Clock clock = &monotonic_now_ns) : clock_(clock) {}

  TimeNs read_clock_ns() const { return clock_(); }

  // CPU numbers here are the system's plus 1, as in verbs_shim/abi/rings.h; 0 stands for none.
  uint32_t cpu() const { return cpu_; }
  // To be called by the engine thread with the CPU that it runs on; true when that is another one.
  bool move_to(uint32_t cpu) { return std::exchange(cpu_, cpu) != cpu; }

  // A program that was last seen polling on `poller_cpu` has been answered. Any thread may call
  // this during a turn.
  void on_answer_for(uint32_t poller_cpu) {
    if (poller_cpu == cpu_ && cpu_ != 0) program_waits_.store(true, std::memory_order_relaxed);
  }
  // Tells whether a program on this CPU has been answered since the last call.
  bool take_program_waits() {
    if (!program_waits_.load(std::memory_order_relaxed)) return false;
    program_waits_.store(false, std::memory_order_relaxed);
    return true;
  }

 private:
  Clock clock_;
  uint32_t cpu_ = 0;
  std::atomic<bool> program_waits_{false};
};

}  // namespace rocemu::daemon
