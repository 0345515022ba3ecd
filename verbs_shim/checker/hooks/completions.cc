// Completions: which requests they end. Send requests are over in their order, so the completion of
// one says that those before it are over, too; an unsignaled one has a completion only when it
// failed (IBTA 10.8.5). Receive requests of a QP are over in their order; those of an SRQ are taken
// in order, and their completions come in any.
#include "verbs_shim/checker/hooks/checker.h"

namespace rocemu::check {
namespace {

enum class Side { kSend, kReceive, kUnknown };

// The request that a completion is of, by its place in the queue, whose size stands for none.
struct Match {
  size_t index = 0;
  bool is_sure = true;  // false where it may be one of several
};

// All signaled ones before it have had completions of their own, so it is the first signaled one,
// or, where it has failed, an unsignaled one in front of that.
Match find_send(const WorkQueue& queue, const ibv_wc& wc) {
  if (wc.status == IBV_WC_SUCCESS) {
    for (size_t i = 0; i < queue.size(); ++i) {
      if (queue.at(i).wr_id == wc.wr_id && queue.at(i).is_signaled) return {i};
    }
    return {queue.size()};
  }
  Match match = {queue.size()};
  for (size_t i = 0; i < queue.size() && match.is_sure; ++i) {
    const Request& request = queue.at(i);
    if (request.wr_id == wc.wr_id) {
      if (queue.each_completes && i == 0) return {i};
      match.is_sure = match.index == queue.size();
      if (match.is_sure) match.index = i;
    }
    if (request.is_signaled) break;
  }
  return match;
}

size_t find_receive(const WorkQueue& queue, uint64_t wr_id) {
  for (size_t i = 0; i < queue.size(); ++i) {
    if (!queue.at(i).is_retired && queue.at(i).wr_id == wr_id) return i;
  }
  return queue.size();
}

// Matching of tags has completions that belong to no queue.
bool is_of_queue(const ibv_wc& wc) {
  return wc.opcode == IBV_WC_RECV || wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ||
         (wc.opcode & IBV_WC_RECV) == 0;
}

class Retirement {
 public:
  Retirement(Hook& hook, CompletionQueue& cq) : hook_(hook), cq_(cq) {}

  void retire(const ibv_wc& wc) {
    if (qp_ == nullptr || qp_->number != wc.qp_num) qp_ = cq_.context->find_qp(wc.qp_num);
    const Side side = side_of(wc);
    if (wc.status != IBV_WC_SUCCESS && qp_ != nullptr) note_failure(wc, side);
    switch (side) {
      case Side::kSend:
        return retire_send(wc);
      case Side::kReceive:
        return retire_receive(wc);
      case Side::kUnknown:
        return;
    }
  }

 private:
  // The opcode of a completion that failed has no meaning, so there the queues have to tell.
  Side side_of(const ibv_wc& wc) {
    if (wc.status == IBV_WC_SUCCESS) {
      if (!is_of_queue(wc)) return Side::kUnknown;
      return (wc.opcode & IBV_WC_RECV) != 0 ? Side::kReceive : Side::kSend;
    }
    if (qp_ == nullptr) return Side::kReceive;
    const bool may_send = qp_->send_cq.get() == &cq_ && has_send(wc);
    const bool may_receive = qp_->recv_cq.get() == &cq_ && has_receive(wc);
    if (may_send != may_receive) return may_send ? Side::kSend : Side::kReceive;
    if (may_send) lose_track_of_both();
    return Side::kUnknown;
  }

  bool has_send(const ibv_wc& wc) {
    std::lock_guard lock(qp_->sends.lock);
    return !qp_->sends.is_tracked || find_send(qp_->sends, wc).index < qp_->sends.size();
  }

  bool has_receive(const ibv_wc& wc) {
    WorkQueue& queue = qp_->srq == nullptr ? qp_->receives : qp_->srq->receives;
    std::lock_guard lock(queue.lock);
    return !queue.is_tracked || find_receive(queue, wc.wr_id) < queue.size();
  }

  void lose_track_of_both() {
    {
      std::lock_guard lock(qp_->sends.lock);
      lose_track(hook_, *qp_, qp_->sends);
    }
    WorkQueue& receives = qp_->srq == nullptr ? qp_->receives : qp_->srq->receives;
    std::lock_guard lock(receives.lock);
    lose_track(hook_, *qp_, receives);
  }

  // A failed completion tells the QP's state (IBTA 10.3.1).
  void note_failure(const ibv_wc& wc, Side side) {
    if (side != Side::kReceive && is_of_an_earlier_error(wc)) return;
    const bool stops_sends_alone =
        wc.status != IBV_WC_WR_FLUSH_ERR && qp_->may_send_again_after_errors();
    qp_->state = stops_sends_alone ? IBV_QPS_SQE : IBV_QPS_ERR;
  }

  bool is_of_an_earlier_error(const ibv_wc& wc) {
    const WorkQueue& queue = qp_->sends;
    std::lock_guard lock(queue.lock);
    if (queue.went_on_at == 0) return false;
    if (!queue.is_tracked) return true;  // which is not known
    const size_t index = find_send(queue, wc).index;
    return index < queue.size() && queue.at(index).index < queue.went_on_at;
  }

  void retire_send(const ibv_wc& wc) {
    if (qp_ == nullptr) return;
    WorkQueue& queue = qp_->sends;
    std::lock_guard lock(queue.lock);
    if (!queue.is_tracked) return;
    const Match found = find_send(queue, wc);
    if (found.index == queue.size() || !found.is_sure) return lose_track(hook_, *qp_, queue);
    for (size_t i = 0; i <= found.index; ++i) {
      Request& request = queue.at(0);
      for (Detector* detector : hook_.checker.sends) {
        detector->on_send_done(hook_.call, *qp_, request, i == found.index ? &wc : nullptr);
      }
      queue.pop_front();
    }
    queue.each_completes = wc.status != IBV_WC_SUCCESS && !qp_->may_send_again_after_errors();
  }

  void retire_receive(const ibv_wc& wc) {
    cq_.context->model->receives_taken.fetch_add(1, std::memory_order_relaxed);
    if (qp_ != nullptr && qp_->srq != nullptr) {
      retire_shared(*qp_->srq, wc);
    } else if (qp_ != nullptr && qp_->type != IBV_QPT_XRC_RECV) {
      retire_own(wc);
    } else {
      retire_of_cq(wc);
    }
  }

  void retire_own(const ibv_wc& wc) {
    WorkQueue& queue = qp_->receives;
    std::lock_guard lock(queue.lock);
    if (!queue.is_tracked) return;
    if (queue.empty() || queue.at(0).wr_id != wc.wr_id) return lose_track(hook_, *qp_, queue);
    for (Detector* detector : hook_.checker.receives) {
      detector->on_receive_done(hook_.call, qp_.get(), nullptr, queue.at(0), &wc, true);
    }
    queue.pop_front();
  }

  void retire_shared(SharedReceiveQueue& srq, const ibv_wc& wc) {
    WorkQueue& queue = srq.receives;
    std::lock_guard lock(queue.lock);
    const size_t found = find_receive(queue, wc.wr_id);
    if (!queue.is_tracked || found == queue.size()) return;
    Request& request = queue.at(found);
    const bool is_sure = srq.outstanding_ids[wc.wr_id] == 1;
    for (Detector* detector : hook_.checker.receives) {
      detector->on_receive_done(hook_.call, nullptr, &srq, request, &wc, is_sure);
    }
    request.is_retired = true;
    srq.forget_id(wc.wr_id);
    while (!queue.empty() && queue.at(0).is_retired) queue.pop_front();
  }

  // Retires a receive of XRC. Its QP may be another process's, so its SRQ is known only where just
  // one reports to this CQ.
  void retire_of_cq(const ibv_wc& wc) {
    std::shared_ptr<SharedReceiveQueue> only;
    {
      std::lock_guard lock(cq_.srqs_lock);
      std::erase_if(cq_.srqs, [](const auto& srq) { return srq.expired(); });
      if (cq_.srqs.size() == 1) only = cq_.srqs[0].lock();
    }
    if (only != nullptr) retire_shared(*only, wc);
  }

  Hook& hook_;
  CompletionQueue& cq_;
  std::shared_ptr<QueuePair> qp_;
};

void polled(rocemu_check_at at, void* shadow, ibv_wc* completions, int count) {
  Hook hook(at);
  auto* cq = hook.object<CompletionQueue>(shadow);
  if (cq == nullptr) return;
  cq->note_poll(hook.call.thread());
  if (cq->tells_next_poll.load(std::memory_order_relaxed)) [[unlikely]] {
    cq->tells_next_poll = false;
    for (Detector* detector : hook.checker.next_polls) {
      detector->on_next_poll(hook.call, *cq, count);
    }
  }
  if (count == 0) return;
  const std::span<ibv_wc> taken(completions, static_cast<size_t>(count));
  cq->completions_taken.fetch_add(taken.size(), std::memory_order_relaxed);
  Retirement retirement(hook, *cq);
  for (const ibv_wc& wc : taken) retirement.retire(wc);
  for (Detector* detector : hook.checker.polls) detector->on_polled(hook.call, *cq, taken);
}

void failures_polled(rocemu_check_at at, void* shadow) {
  auto* cq = own_object<CompletionQueue>(shadow);
  if (cq == nullptr) return;
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) detector->on_failures_polled(hook.call, *cq);
}

int meaningless_read(rocemu_check_at at, void* shadow, const char* field,
                     const ibv_wc* completion) {
  auto* cq = own_object<CompletionQueue>(shadow);
  if (cq == nullptr) return 0;
  Hook hook(at);
  for (Detector* detector : hook.checker.meaningless_reads) {
    detector->on_meaningless_read(hook.call, *cq, field, *completion);
  }
  return hook.checker.meaningless_reads.empty() ? 0 : 1;
}

void armed(rocemu_check_at at, void* shadow, int solicited_only, int had_completions) {
  Hook hook(at);
  auto* cq = hook.object<CompletionQueue>(shadow);
  if (cq == nullptr) return;
  cq->had_completions_when_armed = had_completions != 0;
  for (Detector* detector : hook.checker.arms) {
    detector->on_armed(hook.call, *cq, solicited_only != 0);
  }
}

void end_sends(Hook& hook, QueuePair& qp) {
  std::lock_guard lock(qp.sends.lock);
  for (size_t i = 0; qp.sends.is_tracked && i < qp.sends.size(); ++i) {
    for (Detector* detector : hook.checker.sends) {
      detector->on_send_done(hook.call, qp, qp.sends.at(i), nullptr);
    }
  }
  qp.sends.clear();
  qp.sends.is_tracked = true;
}

void end_receives(Hook& hook, WorkQueue& queue, QueuePair* qp, SharedReceiveQueue* srq) {
  std::lock_guard lock(queue.lock);
  for (size_t i = 0; queue.is_tracked && i < queue.size(); ++i) {
    if (queue.at(i).is_retired) continue;
    for (Detector* detector : hook.checker.receives) {
      detector->on_receive_done(hook.call, qp, srq, queue.at(i), nullptr, true);
    }
  }
  queue.clear();
}

}  // namespace

void lose_track(Hook& hook, QueuePair& qp, WorkQueue& queue) {
  if (!queue.is_tracked) return;
  qp.lose_track(queue);
  for (const auto& detector : hook.checker.detectors) detector->on_track_lost(queue);
}

void lose_track(Hook& hook, SharedReceiveQueue& srq) {
  if (!srq.receives.is_tracked) return;
  srq.receives.is_tracked = false;
  for (const auto& detector : hook.checker.detectors) detector->on_track_lost(srq.receives);
}

void retire_all(Hook& hook, QueuePair& qp) {
  end_sends(hook, qp);
  end_receives(hook, qp.receives, &qp, nullptr);
  std::lock_guard lock(qp.receives.lock);
  qp.receives.is_tracked = true;
}

void retire_all(Hook& hook, SharedReceiveQueue& srq) {
  end_receives(hook, srq.receives, nullptr, &srq);
}

void fill_completion_hooks(rocemu_check_hooks& hooks) {
  hooks.polled = polled;
  hooks.failures_polled = failures_polled;
  hooks.meaningless_read = meaningless_read;
  hooks.armed = armed;
}

}  // namespace rocemu::check
