// The core that the engine runs on, and whether a program that has just been answered needs it: one
// that was last seen there, looking for completions. The engine thread's, but for on_answer_for().
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace rocemu::daemon {

class EngineCpu {
 public:
  // Looks where the engine is now; true when it has moved.
  bool look() {
    const auto now = static_cast<uint32_t>(::sched_getcpu()) + 1;
    return std::exchange(number_, now) != now;
  }
  // The core's number and 1, as programs and the NIC tell each other (rings.h).
  uint32_t number() const { return number_; }

  // Any thread, during a turn.
  void on_answer_for(uint32_t program_core) {
    if (program_core == number_ && number_ != 0)
      program_waits_.store(true, std::memory_order_relaxed);
  }
  // Whether one has been answered since this was asked last.
  bool take_program_waits() {
    if (!program_waits_.load(std::memory_order_relaxed)) return false;
    program_waits_.store(false, std::memory_order_relaxed);
    return true;
  }

 private:
  uint32_t number_ = 0;
  std::atomic<bool> program_waits_{false};
};

}  // namespace rocemu::daemon
