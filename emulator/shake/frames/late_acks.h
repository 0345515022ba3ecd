// Acknowledgements as late as the ACK timeout allows: the answers to a QP's requests come late,
// most by a little, some by half of the timeout that the program has set (IBTA vol 1, 9.7.6.1.3). A
// requester cannot tell whether its peer, the network or its own NIC has taken the time.
//
// Guarantees: no answer is so late that the timeout ends over it, and the answers to a QP keep
// their order, READ responses among them.
#pragma once

#include <functional>

#include "emulator/shake/common/dice.h"
#include "emulator/shake/frames/arrival_delay.h"
#include "emulator/shake/frames/stream_holds.h"

namespace rocemu::shake {

class LateAcks final : public ArrivalDelay {
 public:
  // The ACK timeout of a QP of this device; 0 when it has none, or there is no such QP.
  using Timeout = std::function<TimeNs(wire::Qpn)>;

  LateAcks(Dice dice, Timeout timeout) : dice_(dice), timeout_(std::move(timeout)) {}
  TimeNs due(TimeNs now, const wire::Packet& packet) noexcept override;

 private:
  TimeNs draw_delay(wire::Qpn qpn);

  Dice dice_;
  Timeout timeout_;
  StreamHolds holds_;
};

}  // namespace rocemu::shake
