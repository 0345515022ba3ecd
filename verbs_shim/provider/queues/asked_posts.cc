#include "verbs_shim/provider/queues/asked_posts.h"

#include "verbs_shim/abi/fault.h"

namespace rocemu::provider {
namespace {

int asked_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int asked_receive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);
int asked_srq_receive(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);
int asked_complete(ibv_qp_ex* qp);

template <class Function>
void replace(Function*& place, Function* function) {
  __atomic_store_n(&place, function, __ATOMIC_RELEASE);
}

// The functions as they were go back into their places.
void stop_asking(DeviceContext& context) {
  const PostFunctions& ordinary = context.state.ordinary_posts;
  replace(context.verbs.ops.post_send, ordinary.send);
  replace(context.verbs.ops.post_recv, ordinary.receive);
  replace(context.verbs.ops.post_srq_recv, ordinary.srq_receive);
}

// 0, or what the post is to fail with.
int ask(ibv_context* verbs, uint32_t qp_num, bool receives, bool* ask_again = nullptr) {
  DeviceContext& context = to_context(verbs);
  rocemu_ask_post request = {};
  request.qp_num = qp_num;
  request.receives = receives ? 1 : 0;
  rocemu_ask_post_reply reply;
  const int error = context.call(ROCEMU_OP_ASK_POST, request, reply);
  const bool over = error == 0 && reply.ask_again == 0;
  if (over) stop_asking(context);
  if (ask_again != nullptr) *ask_again = !over;
  return error;
}

int asked_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  const int error = ask(qp->context, qp->qp_num, false);
  if (error == 0) return to_context(qp->context).state.ordinary_posts.send(qp, request, bad);
  if (bad != nullptr) *bad = request;
  return error;
}

int asked_receive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const int error = ask(qp->context, qp->qp_num, true);
  if (error == 0) return to_context(qp->context).state.ordinary_posts.receive(qp, request, bad);
  if (bad != nullptr) *bad = request;
  return error;
}

int asked_srq_receive(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const int error = ask(srq->context, 0, true);
  if (error == 0)
    return to_context(srq->context).state.ordinary_posts.srq_receive(srq, request, bad);
  if (bad != nullptr) *bad = request;
  return error;
}

// Between wr_start and wr_complete the queue's lock is held: what fails here is given up as after
// any other error of the requests.
int asked_complete(ibv_qp_ex* qp) {
  QueuePair& queue = to_queue_pair(qp);
  bool ask_again = true;
  const int error = ask(queue.verbs.qp.context, queue.verbs.qp.qp_num, false, &ask_again);
  if (error != 0 && queue.building.error == 0) queue.building.error = error;
  const auto ordinary = queue.building.ordinary_complete;
  if (!ask_again) replace(qp->wr_complete, ordinary);
  return ordinary(qp);
}

void ask_before_posts(QueuePair& queue) {
  ibv_qp& qp = queue.verbs.qp;
  DeviceContext& context = to_context(qp.context);
  // The caller holds the queue's lock.
  auto& complete = queue.verbs.qp_ex.wr_complete;
  if (complete != nullptr && complete != &asked_complete) {
    queue.building.ordinary_complete = complete;
    replace(complete, &asked_complete);
  }
  replace(context.verbs.ops.post_send, &asked_send);
  replace(context.verbs.ops.post_recv, &asked_receive);
  replace(context.verbs.ops.post_srq_recv, &asked_srq_receive);
}

}  // namespace

void remember_posts(DeviceContext& context) {
  const ibv_context_ops& ops = context.verbs.ops;
  context.state.ordinary_posts = {ops.post_send, ops.post_recv, ops.post_srq_recv};
}

void heed(QueuePair& queue, uint32_t engine_state) {
  if ((engine_state & ROCEMU_ENGINE_SLEEPS) != 0)
    to_context(queue.verbs.qp.context).state.doorbells.wake();
  if ((engine_state & ROCEMU_ENGINE_WANTS_ATTENTION) != 0) ask_before_posts(queue);
}

}  // namespace rocemu::provider
