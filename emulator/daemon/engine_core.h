// The core that the engine runs on, and whether a program that has just been answered needs it: one
// that was last seen there, looking for completions. The engine thread's.
#pragma once

#include <sched.h>

#include <cstdint>
#include <utility>

namespace rocemu::daemon {

class EngineCore {
 public:
  // Looks where the engine is now; true when it has moved.
  bool look() {
    const auto now = static_cast<uint32_t>(::sched_getcpu()) + 1;
    return std::exchange(number_, now) != now;
  }
  // The core's number and 1, as programs and the NIC tell each other (rings.h).
  uint32_t number() const { return number_; }

  void on_answer_for(uint32_t program_core) {
    program_waits_ = program_waits_ || (program_core == number_ && number_ != 0);
  }
  // Whether one has been answered since this was asked last.
  bool take_program_waits() { return std::exchange(program_waits_, false); }

 private:
  uint32_t number_ = 0;
  bool program_waits_ = false;
};

}  // namespace rocemu::daemon
