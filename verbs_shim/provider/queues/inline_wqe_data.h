// A few bytes of payload that travel inline in the WQE, beside the scatter list's element that
// names them (ROCEMU_SEND_INLINE_WQE_DATA of verbs_shim/abi/rings.h).
#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/abi/rings.h"
#include "verbs_shim/provider/rings/work_ring.h"

namespace rocemu::provider {

// Adds the payload to the entry that was claimed last of `ring`, whose opcode and scatter list are
// set, where it is short, can be had, and has the queue to itself: whether it can be read is asked
// by a system call, which takes up to a microsecond, and costs less than the NIC's own only where
// one request waits for it. Of a queue with more in it the NIC reads many by one call. Memory that
// is not there is the NIC's to find out.
void add_inline_data(const WorkRing& ring, rocemu_send_wqe& wqe, const ibv_sge* sges);

}  // namespace rocemu::provider
