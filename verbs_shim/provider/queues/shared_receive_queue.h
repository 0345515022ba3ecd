#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/context/protection_domain.h"
#include "verbs_shim/provider/rings/work_ring.h"

namespace rocemu::provider {

struct SharedReceiveQueue {
  ibv_srq srq;
  ibv_srq_type type;
  uint32_t number;  // XRC
  uint32_t max_wr;
  uint32_t max_sge;
  Mutex lock;  // guards the ring
  WorkRing ring;
  QueueMemory memory;
  void* shadow = nullptr;  // the checker's (checked/)
};

inline SharedReceiveQueue& to_shared_queue(ibv_srq* srq) {
  return *reinterpret_cast<SharedReceiveQueue*>(srq);
}

// ibv_post_srq_recv, for callers that hold the queue's lock.
int post_srq_recv_locked(SharedReceiveQueue& queue, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace rocemu::provider
