// Streams of frames, by the QP that they are for, each of which is held back as a whole for a
// while: what comes meanwhile waits for the same moment, so that a stream keeps its order.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/time.h"
#include "emulator/wire/types.h"

namespace rocemu::shake {

class StreamHolds {
 public:
  // The time until which the stream is held back; `now` when it is not.
  TimeNs held_until(TimeNs now, wire::Qpn qpn) {
    const auto found = until_.find(qpn.value);
    if (found == until_.end()) return now;
    if (found->second > now) return found->second;
    until_.erase(found);
    return now;
  }
  void hold(wire::Qpn qpn, TimeNs until) {
    // Frames may name any QP, so there is a bound.
    if (until_.size() < kMax) until_[qpn.value] = until;
  }

 private:
  static constexpr size_t kMax = 4096;
  std::unordered_map<uint32_t, TimeNs> until_;
};

}  // namespace rocemu::shake
