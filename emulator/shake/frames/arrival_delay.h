// Holds frames back that have arrived: the device sees them later than it could.
#pragma once

#include "base/time.h"
#include "emulator/wire/packet.h"

namespace rocemu::shake {

class ArrivalDelay {
 public:
  virtual ~ArrivalDelay() = default;
  // When the device is to see the packet: `now` or later. Of those that are to be seen at the same
  // time, the one that came first is seen first.
  virtual TimeNs due(TimeNs now, const wire::Packet& packet) noexcept = 0;
};

}  // namespace rocemu::shake
