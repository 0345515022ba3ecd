// ibv_post_send and its like. The queue's own lock is held around the hooks, so that requests are
// known in the order in which they are posted, and that the checker's lock is one below it.
#include "verbs_shim/provider/checked/checked_ops.h"
#include "verbs_shim/provider/checked/checker.h"
#include "verbs_shim/provider/checked/staging.h"
#include "verbs_shim/provider/queues/queue_pair.h"
#include "verbs_shim/provider/queues/shared_receive_queue.h"

namespace rocemu::provider::checked {

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_post_send");
  QueuePair& queue = to_queue_pair(qp);
  if (queue.checked == nullptr) return provider::post_send(qp, request, bad);
  void* shadow = queue.checked->shadow;
  ibv_send_wr* refused = nullptr;
  Lock lock(queue.send_lock);
  hooks->sends_posting(&at, shadow, request);
  const int error = post_send_locked(queue, request, &refused);
  hooks->sends_posted(&at, shadow, request, error, refused);
  if (error != 0 && bad != nullptr) *bad = refused;
  return error;
}

// Windows of type 1: the device posts a request of its own for it.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_bind_mw");
  QueuePair& queue = to_queue_pair(qp);
  if (queue.checked == nullptr) return provider::bind_mw(qp, mw, bind);
  void* shadow = queue.checked->shadow;
  ibv_send_wr request = {};
  request.wr_id = bind->wr_id;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = bind->send_flags;
  Lock lock(queue.send_lock);
  hooks->sends_posting(&at, shadow, &request);
  const int error = bind_mw_locked(queue, mw, bind);
  hooks->sends_posted(&at, shadow, &request, error, &request);
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_post_recv");
  QueuePair& queue = to_queue_pair(qp);
  if (queue.checked == nullptr) return provider::post_recv(qp, request, bad);
  void* shadow = queue.checked->shadow;
  ibv_recv_wr* refused = nullptr;
  Lock lock(queue.recv_lock);
  hooks->receives_posting(&at, shadow, request);
  const int error = post_recv_locked(queue, request, &refused);
  hooks->receives_posted(&at, shadow, request, error, refused);
  if (error != 0 && bad != nullptr) *bad = refused;
  return error;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const rocemu_check_call at = ROCEMU_CHECKED_CALL("ibv_post_srq_recv");
  SharedReceiveQueue& queue = to_shared_queue(srq);
  ibv_recv_wr* refused = nullptr;
  Lock lock(queue.lock);
  hooks->srq_receives_posting(&at, queue.shadow, request);
  const int error = post_srq_recv_locked(queue, request, &refused);
  hooks->srq_receives_posted(&at, queue.shadow, request, error, refused);
  if (error != 0 && bad != nullptr) *bad = refused;
  return error;
}

}  // namespace rocemu::provider::checked
