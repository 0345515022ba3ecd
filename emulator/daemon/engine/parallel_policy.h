// Whether devices have their turns one after the other, or at the same time on several threads.
// Time comes in as a parameter.
//
// What the second costs and brings cannot be known beforehand: every frame then goes from one
// core's cache to the other's, the threads wait for each other at the end of each turn, and on a
// machine with few cores they take them from the programs that they work for. So it is measured.
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
    TimeNs window_ns = 4'000'000;           // of one measurement
    double gain_at_least = 1.05;            // for turns at the same time
    TimeNs shortest_hold_ns = 250'000'000;  // of what a trial has shown
    TimeNs longest_hold_ns = 4'000'000'000;
  };

  ParallelPolicy() = default;
  explicit ParallelPolicy(ParallelMode mode) : mode_(mode) {}
  ParallelPolicy(ParallelMode mode, const Parameters& parameters)
      : mode_(mode), parameters_(parameters) {}

  // Before each turn. `bytes_moved` counts up, by all devices; `divisible`: two or more had much to
  // do last time. True: at the same time.
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
  bool together_ = false;  // in this window
  bool loaded_ = false;    // the last window was
  TimeNs window_began_ = 0;
  uint64_t bytes_at_begin_ = 0;
  bool in_window_ = false;
  uint32_t divisible_turns_ = 0;  // in this window
  unsigned trial_window_ = kTrialWindows;
  std::array<double, kTrialWindows> rates_{};  // bytes a nanosecond; every other one together
  bool winner_ = false;                        // of the last trial
  TimeNs hold_ns_ = 0;
  TimeNs next_trial_at_ = 0;
};

}  // namespace rocemu::daemon
