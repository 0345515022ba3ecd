// Holds frames back that have arrived: the device sees them later than it could.
#pragma once

#include "base/time.h"
#include "emulator/wire/packet.h"

namespace rocemu::shake {

class ArrivalDelay {
 public:
  virtual ~ArrivalDelay() = default;
  // The time at which the device is to see the packet: `now` or later. Packets that are to be seen
  // at the same time are seen in the order in which they came.
  virtual TimeNs due(TimeNs now, const wire::Packet& packet) noexcept = 0;
};

}  // namespace rocemu::shake
