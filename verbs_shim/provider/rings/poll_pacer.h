// Decides what a thread does about polls that find nothing. On a machine with fewer cores than
// pollers the NIC gets its turn only when a program that polls gives its own up. So a thread
//   - polls, and yields after a few empty polls: at once when it is the NIC's core that it keeps,
//     rarely when nobody else seems to want the core. Between threads that all yield this is the
//     fastest way to wait;
//   - sleeps instead once it has polled in vain for a while, so that it costs nothing;
//   - sleeps instead where yields are long: beside threads of its session that compute, a yield
//     gives up what is left of the thread's share (EEVDF moves a task that yields behind its
//     deadline) and takes milliseconds each time, and whoever sleeps is let in when it is woken.
//     Beside other sessions' threads (sched(7), "The autogroup feature") it is the session that
//     loses the core now and then, for as long, and yields in between are short; a thread that
//     sleeps there loses more than it gains. So it takes two long yields with next to none between
//     them. After a while yields are tried again; if they still are long, the next while is twice
//     as long.
// The NIC ends the sleep (rocemu_cq_header of verbs_shim/abi/rings.h), or else a timer does after
// kLongestSleepNs (empty_poll.h). In a virtual machine that timer costs the core 10 to 20 us. So
// while the NIC has more work than it can do there is no sleep as long as yields let it work: what
// is waited for takes longer than that, and the timers of many threads would keep the NIC from the
// work that they wait for. That it is at work counts only while its turns go on: with two NICs on
// two cores, threads that yielded and engines that got no core were seen to go on so for a minute.
//
// One for each thread, whatever CQs it polls: a thread that finds completions in one of them does
// not sleep over another.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::provider {

class PollPacer {
 public:
  enum class Advice {
    kGoOn,
    kYield,
    kSleep,
    kNap,  // a sleep that the NIC does not end
  };

  // The NIC's engine before a wait.
  struct Engine {
    bool here = false;         // it cannot run until this thread gives its core up
    uint32_t turn_behind = 0;  // other than 0: it has been at work for a while without a pause;
                               // another value with each of its turns
    bool crowded = false;  // it has work for all cores, and completions that are taken late cost
                           // less than a core that is kept for polling, or than waking this thread
  };
  // What it did during a yield.
  struct YieldedTo {
    bool waits = false;        // it waited for this core
    bool stood_still = false;  // it was behind, and yet made no turn
    bool works = false;        // it has this core and is at work, so that the yield was for it
  };

  void on_completion() { empty_polls_ = 0; }

  // `clock` gives the monotonic time in ns and is called where it matters only.
  template <class Clock>
  Advice on_empty(const Engine& engine, Clock&& clock) {
    ++polls_since_look_;
    if (++empty_polls_ == 1) waited_ = false;
    if (empty_polls_ % polls_per_wait(engine.here) != 0) return Advice::kGoOn;
    waits_since_ns_ = clock();
    if (!waited_) in_vain_since_ns_ = waits_since_ns_;
    waited_ = true;
    if (!engine.crowded && !sleeps_now(is_behind(engine))) return Advice::kYield;
    yields_in_vain_ = std::min(yields_in_vain_, kYieldsInVain - 1);  // the next one is a trial
    polls_since_look_ += kPollsPerSleep;
    return engine.crowded ? Advice::kNap : Advice::kSleep;
  }

  // A poll has found nothing in a thread that is to keep its core whatever happens.
  void on_empty_without_wait() { ++polls_since_look_; }

  // A yield was over at `now_ns`. A thread that has had less than its share of the core so far is
  // chosen again, or others like it are, and many yields do not change that: only sleeping does.
  void on_yield(const YieldedTo& engine, uint64_t now_ns) {
    const uint64_t yield_ns = now_ns - waits_since_ns_;
    const bool changed = yield_ns >= kShortestChangeNs;
    unchanged_ = changed ? 0 : unchanged_ + 1;
    const bool in_vain = engine.waits && (!changed || engine.stood_still);
    yields_in_vain_ = in_vain ? yields_in_vain_ + 1 : 0;
    if (yield_ns >= kLongYieldNs) {
      on_long_yield(engine.works, now_ns);
    } else if (++short_yields_ >= kShortYieldsInARow) {
      busy_ns_ = 0;
    }
  }

  // True every now and then: look whether the NIC still is there, which is a system call.
  bool look_is_due() {
    if (polls_since_look_ < kPollsPerLook) return false;
    polls_since_look_ = 0;
    return true;
  }

 private:
  static constexpr uint32_t kPollsPerWait = 8;
  static constexpr uint32_t kPollsAlone = 64;     // where nobody else seems to be
  static constexpr uint32_t kUnchangedAlone = 8;  // yields in a row after which that is so
  static constexpr uint32_t kPollsPerLook = 8192;
  static constexpr uint32_t kPollsPerSleep = 128;  // a sleep counts as so many polls
  static constexpr uint32_t kYieldsInVain = 32;
  static constexpr uint64_t kShortestChangeNs = 700;  // to another thread and back
  static constexpr uint64_t kSleepAfterNs = 1'000'000;
  static constexpr uint64_t kLongYieldNs = 300'000;
  static constexpr uint64_t kLongestTurnNs = 2'000'000;  // many times what one takes on a core
  static constexpr uint32_t kShortYieldsInARow = 3;      // so many tell that yields are short
  static constexpr uint64_t kShortestBusyNs = 50'000'000;
  static constexpr uint64_t kLongestBusyNs = 800'000'000;

  uint32_t polls_per_wait(bool engine_here) const {
    if (engine_here) return 1;
    return unchanged_ >= kUnchangedAlone ? kPollsAlone : kPollsPerWait;
  }

  // True while it has more work than it gets done, and gets a core for it.
  bool is_behind(const Engine& engine) {
    if (engine.turn_behind != last_turn_) {
      last_turn_ = engine.turn_behind;
      last_turn_since_ns_ = waits_since_ns_;
    }
    return last_turn_ != 0 && waits_since_ns_ - last_turn_since_ns_ < kLongestTurnNs;
  }

  bool sleeps_now(bool engine_behind) const {
    if (yields_in_vain_ >= kYieldsInVain) return true;
    return !engine_behind && (waits_since_ns_ < busy_until_ns_ ||
                              waits_since_ns_ - in_vain_since_ns_ >= kSleepAfterNs);
  }

  void on_long_yield(bool engine_works, uint64_t now_ns) {
    in_vain_since_ns_ = now_ns;  // it has not polled meanwhile
    if (engine_works) return;
    const bool again = short_yields_ < kShortYieldsInARow;
    short_yields_ = 0;
    if (!again) return;
    busy_ns_ = std::clamp(busy_ns_ * 2, kShortestBusyNs, kLongestBusyNs);
    busy_until_ns_ = now_ns + busy_ns_;
  }

  uint32_t empty_polls_ = 0;  // in a row, and so for the other counts
  bool waited_ = false;       // since the first of them
  uint32_t yields_in_vain_ = 0;
  uint32_t unchanged_ = 0;  // yields that changed to no other thread
  uint32_t short_yields_ = kShortYieldsInARow;
  uint32_t polls_since_look_ = 0;
  uint64_t in_vain_since_ns_ = 0;
  uint64_t waits_since_ns_ = 0;
  uint64_t busy_until_ns_ = 0;
  uint64_t busy_ns_ = 0;
  uint32_t last_turn_ = 0;  // of the engine, and since when it has been that
  uint64_t last_turn_since_ns_ = 0;
};

}  // namespace rocemu::provider
