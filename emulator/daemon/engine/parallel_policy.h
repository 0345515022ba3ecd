// ParallelPolicy decides how many threads have a part in a turn: one, which does one thing after
// the other, or several at the same time. Time comes in as a parameter.
//
// The cost and the gain of more threads cannot be known beforehand: every frame then goes from one
// CPU's cache to another's, the threads wait for each other at the end of each turn, and on a
// machine with few CPUs they take them from the programs that they work for. So it is measured.
// While two devices or two programs or more move much at once, a trial does it with 1, 2, 4 and so
// on, in turn, and the fastest is kept for a while, the longer the more often it has come out the
// same.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

enum class ParallelMode : uint8_t {
  automatic,  // whichever is faster
  never,
  always,    // devices at the same time, as many as there may be; for tests
  programs,  // likewise programs of a device
};

class ParallelPolicy {
 public:
  struct Parameters {
    TimeNs window_ns = 4'000'000;           // length of one measurement
    double gain_at_least = 1.05;            // more threads than now are to be faster by this factor
    TimeNs shortest_hold_ns = 250'000'000;  // the outcome of a trial is kept so long
    TimeNs longest_hold_ns = 4'000'000'000;
  };

  static constexpr unsigned kMaxThreads = 16;

  // `max_threads`: at least 2, at most kMaxThreads.
  ParallelPolicy(ParallelMode mode, unsigned max_threads)
      : ParallelPolicy(mode, max_threads, Parameters()) {}
  ParallelPolicy(ParallelMode mode, unsigned max_threads, const Parameters& parameters)
      : mode_(mode), max_threads_(max_threads), parameters_(parameters) {}

  // To be called before each turn; returns how many threads share it. `bytes_moved` is a running
  // count for all devices; `shares` is the number of devices, or of programs on one, that had much
  // to do last time.
  unsigned next_turn(TimeNs now, uint64_t bytes_moved, unsigned shares);

 private:
  static constexpr unsigned kWindowsPerWay = 3;
  static constexpr unsigned kMaxWays = 5;  // 1, 2, 4, 8, 16
  static_assert(1 << (kMaxWays - 1) >= kMaxThreads);

  void begin_window(TimeNs now, uint64_t bytes_moved);
  void end_window(TimeNs now, uint64_t bytes_moved);
  void begin_trial();
  void end_trial(TimeNs now);
  void give_up_trial(TimeNs now);
  unsigned threads_of(unsigned way) const { return std::min(1U << way, max_threads_); }
  // The ways that are worth a trial where a turn is so many shares.
  unsigned ways_for(unsigned shares) const;

  ParallelMode mode_;
  unsigned max_threads_;
  Parameters parameters_;
  unsigned threads_ = 1;     // in this window
  bool under_load_ = false;  // the last window had enough divisible turns
  TimeNs window_began_ = 0;
  uint64_t bytes_at_begin_ = 0;
  bool in_window_ = false;
  uint32_t divisible_turns_ = 0;  // in this window
  unsigned most_shares_ = 0;      // of one turn, in this window
  bool in_trial_ = false;
  unsigned ways_ = 0;          // that this trial tries, or the last one did
  unsigned trial_window_ = 0;  // each way in turn, kWindowsPerWay times
  std::array<std::array<double, kWindowsPerWay>, kMaxWays> rates_{};  // bytes a nanosecond, by way
  unsigned winner_ = 1;  // the number of threads that was fastest in the last trial
  TimeNs hold_ns_ = 0;
  TimeNs next_trial_at_ = 0;
};

}  // namespace rocemu::daemon
