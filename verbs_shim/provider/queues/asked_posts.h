// Posts that fail on request (verbs_shim/abi/fault.h). While the NIC wants attention, the functions
// that post are others, which ask it before each post. Without such faults they are not there: a
// program finds out where it looks whether the engine sleeps.
#pragma once

#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider {

// Once the context has its functions, and before the program has the context.
void remember_posts(DeviceContext& context);

// Acts on the engine's state, other than 0, that a doorbell of this QP found (Doorbells::ring):
// wakes an engine that sleeps; when the engine wants attention, the NIC is asked before each post
// to a QP of this context from the next one on.
void heed(QueuePair& queue, uint32_t engine_state);

}  // namespace rocemu::provider
