// ParallelPolicy decides how many threads have a part in a turn: one, which does one thing after
// the other, or several at the same time; and in what: in the turns of devices, or in what is moved
// for programs. Time comes in as a parameter.
//
// The cost and the gain of more threads cannot be known beforehand: every frame then goes from one
// CPU's cache to another's, the threads wait for each other at the end of each turn, and on a
// machine with few CPUs they take them from the programs that they work for. So it is measured.
// While two devices or two programs or more move much at once, a trial does it with 1, 2, 4 and so
// on, in turn, each way that there is, and the fastest is kept for a while, the longer the more
// often it has come out the same.
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

// Into how many parts the last turns could have been divided.
struct TurnShares {
  unsigned devices = 0;   // that had much to do
  unsigned programs = 0;  // that much was moved for at once
};

// How a turn is divided.
struct TurnDivision {
  unsigned threads = 1;     // 1: it is not
  bool by_program = false;  // else by device

  bool operator==(const TurnDivision&) const = default;
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

  // To be called before each turn; returns how it is divided. `bytes_moved` is a running count for
  // all devices.
  TurnDivision next_turn(TimeNs now, uint64_t bytes_moved, const TurnShares& shares);

 private:
  static constexpr unsigned kWindowsPerWay = 3;
  static constexpr unsigned kMaxWays = 9;  // one thread; 2, 4, 8 and 16 of each kind
  static_assert(1 << (kMaxWays / 2) >= kMaxThreads);

  struct Ways {
    std::array<TurnDivision, kMaxWays> list{};
    unsigned count = 1;  // the first is one thread; they become more and more

    void add(const TurnDivision& way) { list[count++] = way; }
    bool has(const TurnDivision& way) const {
      return std::find(list.begin(), list.begin() + count, way) != list.begin() + count;
    }
  };

  void begin_window(TimeNs now, uint64_t bytes_moved);
  void end_window(TimeNs now, uint64_t bytes_moved);
  void begin_trial();
  void end_trial(TimeNs now);
  void give_up_trial(TimeNs now);
  // The ways that are worth a trial where a turn has such shares.
  Ways ways_for(const TurnShares& shares) const;
  bool wants_trial(TimeNs now) const;
  unsigned index_of_winner() const;

  ParallelMode mode_;
  unsigned max_threads_;
  Parameters parameters_;
  TurnDivision way_;         // of this window
  bool under_load_ = false;  // the last window had enough divisible turns
  TimeNs window_began_ = 0;
  uint64_t bytes_at_begin_ = 0;
  bool in_window_ = false;
  uint32_t divisible_turns_ = 0;  // in this window
  TurnShares most_;               // of each kind in one turn, in this window
  bool in_trial_ = false;
  Ways ways_;                  // that this trial tries, or the last one did
  unsigned trial_window_ = 0;  // each way in turn, kWindowsPerWay times
  std::array<std::array<double, kWindowsPerWay>, kMaxWays> rates_{};  // bytes a nanosecond, by way
  TurnDivision winner_;  // what was fastest in the last trial
  TimeNs hold_ns_ = 0;
  TimeNs next_trial_at_ = 0;
};

}  // namespace rocemu::daemon
