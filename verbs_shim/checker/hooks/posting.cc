// Posting: each request is in its queue before the NIC can see it, so that no completion comes for
// one that is not known.
#include "verbs_shim/checker/hooks/checker.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

// A list that is longer than this can't be posted, whatever the NIC has taken meanwhile: it may be
// one without an end.
size_t longest_list(uint32_t max_wr) { return size_t{max_wr} * 2 + 64; }
// Requests that a program never takes completions of are not remembered without a bound.
constexpr size_t kMaxOutstanding = size_t{1} << 17;

void copy_sges(Request& request, const ibv_sge* list, int count, uint32_t most) {
  if (list == nullptr || count <= 0 || static_cast<uint32_t>(count) > most) return;
  request.sges.assign(list, list + count);
}

void fill(Request& request, const QueuePair& qp, const ibv_send_wr& wr) {
  request.is_send = true;
  request.wr_id = wr.wr_id;
  request.opcode = wr.opcode;
  request.flags = wr.send_flags;
  request.is_signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  request.is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  request.receives_before = qp.context->model->receives_taken.load(std::memory_order_relaxed);
  copy_sges(request, wr.sg_list, wr.num_sge, qp.granted.max_send_sge);
  if (wr.opcode == kFlush) {
    request.remote_address = wr.wr.rdma.remote_addr;
    request.rkey = wr.wr.rdma.rkey;
    return;
  }
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wr.wr.rdma.rkey;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.rkey = wr.wr.atomic.rkey;
      break;
    default:
      break;
  }
  if (qp.type != IBV_QPT_UD) return;
  request.ah = wr.wr.ud.ah;
  request.remote_qpn = wr.wr.ud.remote_qpn;
  request.remote_qkey = wr.wr.ud.remote_qkey;
}

// Puts a list into its queue; `fill` makes an entry of each.
template <typename Wr, typename Fill>
void push_list(const Call& call, WorkQueue& queue, uint32_t max_wr, const Wr* list, Fill fill) {
  if (!queue.is_tracked) queue.clear();
  size_t length = 0;
  for (const Wr* wr = list; wr != nullptr && length < longest_list(max_wr); wr = wr->next) {
    ++length;
    Request& request = queue.push();
    request.posted_at = call.place();
    request.posted_by = call.thread();
    fill(request, *wr);
  }
}

// Takes back those that were not posted.
template <typename Wr, typename Forget>
void drop_refused(const std::vector<Detector*>& detectors, WorkQueue& queue, uint32_t max_wr,
                  const Wr* list, int error, const Wr* bad, Forget forget) {
  if (error == 0) return;
  size_t length = 0;
  size_t refused = 0;
  bool is_refused = false;
  for (const Wr* wr = list; wr != nullptr && length < longest_list(max_wr); wr = wr->next) {
    ++length;
    is_refused = is_refused || wr == bad;
    refused += is_refused ? 1 : 0;
  }
  for (; refused > 0 && !queue.empty(); --refused) {
    const Request& last = queue.at(queue.size() - 1);
    for (Detector* detector : detectors) detector->on_not_posted(queue, last);
    forget(last);
    queue.drop_last();
  }
}

void sends_posting(rocemu_check_at at, void* shadow, const ibv_send_wr* list) {
  Hook hook(at);
  auto* qp = hook.object<QueuePair>(shadow);
  if (qp == nullptr) return;
  qp->sends.lock.lock();
  if (qp->sends.size() > kMaxOutstanding) lose_track(hook, *qp, qp->sends);
  push_list(hook.call, qp->sends, qp->granted.max_send_wr, list,
            [&](Request& request, const ibv_send_wr& wr) {
              fill(request, *qp, wr);
              for (Detector* detector : hook.checker.sends) {
                detector->on_send_posting(hook.call, *qp, request);
              }
            });
}

void sends_posted(rocemu_check_at at, void* shadow, const ibv_send_wr* list, int error,
                  const ibv_send_wr* bad) {
  auto* qp = own_object<QueuePair>(shadow);
  if (qp == nullptr) return;
  Hook hook(at);
  drop_refused(hook.checker.sends, qp->sends, qp->granted.max_send_wr, list, error, bad,
               [](const Request&) {});
  for (Detector* detector : hook.checker.sends) {
    detector->on_sends_posted(hook.call, *qp, list, error, bad);
  }
  qp->sends.lock.unlock();
}

void receives_posting(rocemu_check_at at, void* shadow, const ibv_recv_wr* list) {
  Hook hook(at);
  auto* qp = hook.object<QueuePair>(shadow);
  if (qp == nullptr) return;
  qp->receives.lock.lock();
  if (qp->receives.size() > kMaxOutstanding) lose_track(hook, *qp, qp->receives);
  push_list(hook.call, qp->receives, qp->granted.max_recv_wr, list,
            [&](Request& request, const ibv_recv_wr& wr) {
              request.wr_id = wr.wr_id;
              request.is_signaled = true;
              copy_sges(request, wr.sg_list, wr.num_sge, qp->granted.max_recv_sge);
              for (Detector* detector : hook.checker.receives) {
                detector->on_receive_posting(hook.call, qp, nullptr, request);
              }
            });
}

void receives_posted(rocemu_check_at at, void* shadow, const ibv_recv_wr* list, int error,
                     const ibv_recv_wr* bad) {
  auto* qp = own_object<QueuePair>(shadow);
  if (qp == nullptr) return;
  Hook hook(at);
  drop_refused(hook.checker.receives, qp->receives, qp->granted.max_recv_wr, list, error, bad,
               [](const Request&) {});
  for (Detector* detector : hook.checker.receives) {
    detector->on_receives_posted(hook.call, qp, nullptr, list, error, bad);
  }
  qp->receives.lock.unlock();
}

void srq_receives_posting(rocemu_check_at at, void* shadow, const ibv_recv_wr* list) {
  Hook hook(at);
  auto* srq = hook.object<SharedReceiveQueue>(shadow);
  if (srq == nullptr) return;
  srq->receives.lock.lock();
  if (srq->receives.size() > kMaxOutstanding) lose_track(hook, *srq);
  if (!srq->receives.is_tracked) srq->outstanding_ids.clear();
  push_list(hook.call, srq->receives, srq->max_wr, list,
            [&](Request& request, const ibv_recv_wr& wr) {
              request.wr_id = wr.wr_id;
              request.is_signaled = true;
              ++srq->outstanding_ids[wr.wr_id];
              copy_sges(request, wr.sg_list, wr.num_sge, srq->max_sge);
              for (Detector* detector : hook.checker.receives) {
                detector->on_receive_posting(hook.call, nullptr, srq, request);
              }
            });
}

void srq_receives_posted(rocemu_check_at at, void* shadow, const ibv_recv_wr* list, int error,
                         const ibv_recv_wr* bad) {
  auto* srq = own_object<SharedReceiveQueue>(shadow);
  if (srq == nullptr) return;
  Hook hook(at);
  drop_refused(hook.checker.receives, srq->receives, srq->max_wr, list, error, bad,
               [&](const Request& request) { srq->forget_id(request.wr_id); });
  for (Detector* detector : hook.checker.receives) {
    detector->on_receives_posted(hook.call, nullptr, srq, list, error, bad);
  }
  srq->receives.lock.unlock();
}

}  // namespace

void fill_posting_hooks(rocemu_check_hooks& hooks) {
  hooks.sends_posting = sends_posting;
  hooks.sends_posted = sends_posted;
  hooks.receives_posting = receives_posting;
  hooks.receives_posted = receives_posted;
  hooks.srq_receives_posting = srq_receives_posting;
  hooks.srq_receives_posted = srq_receives_posted;
}

}  // namespace rocemu::check
