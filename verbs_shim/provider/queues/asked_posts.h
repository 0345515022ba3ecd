// Posts that fail on request (verbs_shim/abi/fault.h). While the NIC wants attention, the functions
// that post are others, which ask it before each post. Without such faults they are not there: a
// program finds out where it looks whether the engine sleeps.
#pragma once

#include "verbs_shim/provider/queues/queue_pair.h"

namespace rocemu::provider {

// The NIC wants attention: from the next post on those of this QP's context are asked about.
void ask_before_posts(QueuePair& queue);

}  // namespace rocemu::provider
