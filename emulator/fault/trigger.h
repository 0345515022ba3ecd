// When a fault strikes: by the clock, by what is counted, by chance, once or again and again.
// Sans-IO: time and events come in as parameters, and a seed replays exactly.
//
// 1. It is due at `at`, or `after` it was asked for. A moment or a state that counts begins when,
//    from then on, as many requests or packets have been seen as it says.
// 2. A moment strikes when it begins, with its probability. A state and a filter are active from
//    then on: for `for`, or until somebody takes the fault back.
// 3. With `every` it begins anew each time that has passed since the beginning before; one that
//    counts begins to count anew instead. `times` bounds how often a moment or a state begins;
//    without `every` and `times` that is once.
// 4. While a filter is active, each event that it is about is struck with its probability,
//    from number `count` on, at most `times`. A filter with a number and no `times` strikes one.
#pragma once

#include "base/random.h"
#include "base/time.h"
#include "emulator/fault/spec.h"

namespace rocemu::fault {

class Trigger {
 public:
  Trigger(const When& when, Nature nature, TimeNs now_ns, TimeNs nic_began_ns);

  enum class State : uint8_t { waiting, active, over };
  State state() const { return state_; }
  uint64_t strikes() const { return strikes_; }
  // When on_time() has to be called; kNever when no time changes anything.
  TimeNs next_ns() const { return next_ns_; }
  // The events that on_count() has to be told of now.
  Counted counts() const { return counting_ ? when_.counted : Counted::nothing; }

  enum class Change : uint8_t { none, begins, ends };
  // To be called again until it says none: much may have become due at once.
  Change on_time(TimeNs now_ns);
  // One of what it counts. A moment or a state that begins by it begins now.
  Change on_count(TimeNs now_ns);
  // One of the events that a filter is about. True: the fault strikes it.
  bool on_event();

 private:
  Change step(TimeNs now_ns);
  Change begin(TimeNs now_ns);
  void wait_for_next(TimeNs now_ns);
  bool spent() const;

  When when_;
  Nature nature_;
  Random random_;
  State state_ = State::waiting;
  bool counting_ = false;
  TimeNs next_ns_;
  TimeNs began_ns_ = 0;
  uint32_t counted_ = 0;
  uint64_t begun_ = 0;
  uint64_t strikes_ = 0;
};

}  // namespace rocemu::fault
