// IdlePolicy decides what the engine does after a turn that found no work. Time comes in as a
// parameter.
//
// There are often fewer CPUs than threads that busy-poll: two programs and the engine on two CPUs
// is the normal case. The engine therefore
//   - polls, and yields every few empty turns, so that the program it shares a CPU with gets on;
//     at once when it has just answered a program that was seen polling on its CPU;
//   - sleeps after some 50 us without work, so that an idle NIC costs nothing;
//   - sleeps at once after a turn without work that a timer alone has brought about;
//   - yields where it was kept from sleeping by what turned out to be no work: a program that rings
//     its doorbells in vain has it neither sleep nor reach the next yield;
//   - times each yield. Two within 10 ms that took over 300 us mean that a program which busy-polls
//     without ever yielding (one that polls its own memory, say) keeps the CPU until the scheduler
//     preempts it. The engine then goes to block mode for 20 to 200 ms: it never yields but sleeps
//     after 3 us, and the kernel's wake-up preemption, which a yielding thread does not get, brings
//     it back when a doorbell rings. A program that polls its memory on another CPU answers what it
//     finds there within these 3 us: to be woken by it would cost more, in a virtual machine 40 us.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

class IdlePolicy {
 public:
  enum class Action { poll, yield, sleep };

  struct Parameters {
    unsigned turns_per_yield = 8;
    TimeNs sleep_after_ns = 50'000;
    TimeNs long_yield_ns = 300'000;
    TimeNs recent_ns = 10'000'000;
    TimeNs block_min_ns = 20'000'000;
    TimeNs block_max_ns = 200'000'000;
    TimeNs block_sleep_after_ns = 3'000;  // in block mode
    TimeNs behind_after_ns = 1'000'000;
  };

  IdlePolicy() = default;
  explicit IdlePolicy(const Parameters& parameters) : parameters_(parameters) {}

  void on_work(TimeNs now) {
    if (busy_since_ == 0) busy_since_ = now;
    empty_turns_ = 0;
    timed_out_ = false;
    kept_awake_ = false;
  }
  // True when all turns of the last while have found work: there is more of it than gets done.
  bool behind(TimeNs now) const {
    return busy_since_ != 0 && now - busy_since_ >= parameters_.behind_after_ns;
  }
  // `program_waits` says that a program waits for this CPU and can go on (CompletionHost).
  Action on_empty_turn(TimeNs now, bool program_waits);
  void on_yield(TimeNs before, TimeNs after);
  // To be called after a sleep. When nothing but time has ended it, a turn without work is followed
  // by the next sleep at once: a port that is looked at by time would cost far more than the look.
  void on_wake_up(bool timed_out) {
    empty_turns_ = 0;
    timed_out_ = timed_out;
  }
  // To be called instead where there was something to look at before the sleep began.
  void on_kept_awake() {
    on_wake_up(false);
    kept_awake_ = true;
  }

  bool block_mode(TimeNs now) const { return now < block_until_; }

 private:
  Parameters parameters_;
  unsigned empty_turns_ = 0;
  bool timed_out_ = false;
  bool kept_awake_ = false;
  TimeNs idle_since_ = 0;
  TimeNs busy_since_ = 0;  // 0: the last turn found no work
  TimeNs long_yield_at_ = 0;
  TimeNs block_until_ = 0;
  TimeNs block_length_ns_ = 0;
};

}  // namespace rocemu::daemon
