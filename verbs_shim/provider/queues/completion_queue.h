#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/provider/common/linked_list.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/context/device_context.h"
#include "verbs_shim/provider/context/protection_domain.h"
#include "verbs_shim/provider/rings/completion_ring.h"

namespace rocemu::provider {

struct CompletionQueue {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  } verbs;
  Mutex lock;  // guards the ring and `current`; held from start_poll to end_poll
  CompletionRing ring;
  const rocemu_cqe* current = nullptr;  // the completion that ibv_cq_ex's read_ functions read
  bool in_batch = false;                // from start_poll to end_poll
  bool single_threaded = false;         // IBV_CREATE_CQ_ATTR_SINGLE_THREADED
  Channel* channel = nullptr;
  ibv_pd* parent_domain = nullptr;
  QueueMemory memory;
  QueueMemory retired;     // the one before the last resize: somebody may still be arming it
  void* shadow = nullptr;  // the checker's (checked/)
  ListLinks<CompletionQueue> known;  // among the context's; under their lock
};

inline CompletionQueue& to_queue(ibv_cq* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
inline CompletionQueue& to_queue(ibv_cq_ex* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }

// True when the caller itself holds the lock: who says that one thread alone uses a CQ may destroy
// its QPs in the middle of a batch, as over mlx5. Of any other CQ a second thread may be that
// batch's.
inline bool is_own_batch(const CompletionQueue& queue) {
  return queue.single_threaded && queue.in_batch;
}

// poll.cc: the functions that ibv_cq_ex holds, for completions with the fields of `wc_flags`.
inline constexpr uint64_t kOfferedWcFlags =
    uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
    IBV_WC_EX_WITH_TM_INFO;
void set_poll_functions(ibv_cq_ex& cq, uint64_t wc_flags);
// ibv_poll_cq for callers that hold the queue's lock, and without the wait where there is nothing.
int take_locked(CompletionQueue& queue, int entries, ibv_wc* completions);
void translate(const rocemu_cqe& from, ibv_wc& to);

}  // namespace rocemu::provider
