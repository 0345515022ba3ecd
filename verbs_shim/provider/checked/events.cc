// Events that the program has read.
#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/queues/completion_queue.h"

namespace rocemu::provider::checked {

void cq_event(ibv_cq* cq) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_get_cq_event");
  hooks->cq_event_taken(&at, to_queue(cq).shadow);
}

void async_event(ibv_context* context, ibv_async_event* event) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_get_async_event");
  provider::async_event(context, event);
  hooks->async_event_taken(&at, context, event);
}

}  // namespace rocemu::provider::checked
