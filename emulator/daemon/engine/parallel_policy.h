// ParallelPolicy decides whether devices have their turns one after the other, or at the same time
// on several threads. Time comes in as a parameter.
//
// The cost and the gain of the second way cannot be known beforehand: every frame then goes from
// one CPU's cache to the other's, the threads wait for each other at the end of each turn, and on a
// machine with few CPUs they take them from the programs that they work for. So it is measured.
// While two devices or more move much at once, a trial does it both ways in turn, and the faster
// one is kept for a while, the longer the more often it has come out the same.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

enum class ParallelMode : uint8_t {
  automatic,  // whichever is faster
  never,
  always,  // for tests
};

class ParallelPolicy {
 public:
  struct Parameters {
    TimeNs window_ns = 4'000'000;  // length of one measurement
    double gain_at_least = 1.05;   // turns at the same time have to be faster by this factor
    TimeNs shortest_hold_ns = 250'000'000;  // the outcome of a trial is kept so long
    TimeNs longest_hold_ns = 4'000'000'000;
  };

  ParallelPolicy() = default;
  explicit ParallelPolicy(ParallelMode mode) : mode_(mode) {}
  ParallelPolicy(ParallelMode mode, const Parameters& parameters)
      : mode_(mode), parameters_(parameters) {}

  // To be called before each turn; true: the devices have it at the same time. `bytes_moved` is a
  // running count for all devices; `divisible` says that two or more had much to do last time.
  bool next_turn(TimeNs now, uint64_t bytes_moved, bool divisible);

 private:
  static constexpr unsigned kWindowsPerWay = 3;
  static constexpr unsigned kTrialWindows = 2 * kWindowsPerWay;

  void begin_window(TimeNs now, uint64_t bytes_moved);
  void end_window(TimeNs now, uint64_t bytes_moved);
  void begin_trial();
  void end_trial(TimeNs now);
  void give_up_trial(TimeNs now);
  bool in_trial() const { return trial_window_ < kTrialWindows; }

  ParallelMode mode_ = ParallelMode::never;
  Parameters parameters_;
  bool together_ = false;  // the way of this window
  bool loaded_ = false;    // the last window had enough divisible turns
  TimeNs window_began_ = 0;
  uint64_t bytes_at_begin_ = 0;
  bool in_window_ = false;
  uint32_t divisible_turns_ = 0;  // in this window
  unsigned trial_window_ = kTrialWindows;
  std::array<double, kTrialWindows> rates_{};  // bytes a nanosecond; every other one together
  bool winner_ = false;                        // the last trial's faster way, as in together_
  TimeNs hold_ns_ = 0;
  TimeNs next_trial_at_ = 0;
};

}  // namespace rocemu::daemon
