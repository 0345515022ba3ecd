// OutOfOrder is what a responder with selective repeat has beyond one with go-back-N: packets that
// were taken ahead of the expected PSN, and the receives that messages among them have claimed.
//
// 1. A packet ahead is taken when it says where its payload belongs (wire/selective.h) and that is
//    allowed now. Taken means that its payload is in its place, or kept when it is small, and that
//    its headers wait. Nothing else happens: no completion, no count, no answer, no error.
// 2. It is executed when it is the expected one, by the same code and under the same checks as any
//    other, but for the payload, which is in place. What it said of its place must then prove true.
// 3. A packet that cannot be taken is dropped in silence and comes again; if there is something
//    wrong with it, that is found when it is the expected one.
// 4. READs and atomics wait, and are executed in their turn.
// 5. WRITEs take effect in their order where they overlap: an older one that comes late leaves out
//    what newer ones have written.
// 6. The n-th message that takes a receive gets the n-th receive: those of messages ahead are taken
//    off the queue early. Not over XRC, whose messages name their queues themselves, nor with
//    tag matching, where the tag decides: there only small SENDs are taken.
#pragma once

#include "emulator/transport/interface/work.h"
#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/transport/responder/arrivals_ahead.h"

namespace rocemu::transport {

struct OutOfOrder {
  ArrivalsAhead arrivals;
  RingBuffer<ReceiveWork> receives;  // claimed, without the one of the message under way
  uint32_t receives_done = 0;        // messages executed that took one
  bool in_place = false;             // the payload of the packet that is being executed
};

}  // namespace rocemu::transport
