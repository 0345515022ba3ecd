// Finds why a QP waits: of all that it could wait for, the one thing whose end lets it go on.
//
// 1. What keeps the next packet from leaving counts before what keeps a request from completing,
//    and in the order in which the requester asks for it (requester/rc_requester.cc): state, RNR,
//    window, fence or READs, pace. A rate that holds all of the QP's frames back, those of a READ's
//    answer too, is asked for last. But as long as what was sent again brings no progress, that is
//    the reason: a narrow window and a slow pace come of it.
// 2. With nothing to send, requests that are not completed wait for the peer.
// 3. With nothing under way it is the program's turn. Completions that it has not taken are why it
//    posts nothing, and that goes before the receives which it would have posted then.
#pragma once

#include "emulator/transport/interface/wait.h"

namespace rocemu::transport {

WaitReason find_wait_reason(const WaitFacts& facts);

}  // namespace rocemu::transport
