// CompletionHost is what the completion rings ask of the NIC that fills them: the time that
// completions are stamped with, and to remember that a program which polls on the NIC's own CPU
// can go on. Such a program needs that CPU, so the NIC yields it (engine/idle_policy.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/monotonic_clock.h"

namespace rocemu::daemon {

class CompletionHost {
 public:
  using Clock = TimeNs (*)();

  explicit CompletionHost(Clock clock = &monotonic_now_ns) : clock_(clock) {}

  TimeNs read_clock_ns() const { return clock_(); }

  // CPU numbers here are the system's plus 1, as in verbs_shim/abi/rings.h; 0 stands for none.
  // Only the engine thread moves the NIC to another CPU.
  uint32_t cpu() const { return cpu_; }
  void set_cpu(uint32_t cpu) { cpu_ = cpu; }

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
