// Datagrams overtake each other: those of UD in any order (IBTA vol 1, 9.8.3: there is none to rely
// on), those of a UC connection as a stream that others overtake.
//
// Guarantees: packets of one UC connection keep their order, since messages over it arrive in order
// or not at all; nothing is lost; management datagrams are left alone.
#pragma once

#include "emulator/shake/common/dice.h"
#include "emulator/shake/frames/arrival_delay.h"
#include "emulator/shake/frames/stream_holds.h"

namespace rocemu::shake {

class Overtaking final : public ArrivalDelay {
 public:
  explicit Overtaking(Dice dice) : dice_(dice) {}
  TimeNs due(TimeNs now, const wire::Packet& packet) noexcept override;

 private:
  Dice dice_;
  StreamHolds holds_;
};

}  // namespace rocemu::shake
