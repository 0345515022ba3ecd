// destroyed-undrained: a QP is destroyed while send requests of which the program wants to hear are
// outstanding. In the error states the program knows that they are over, and how.
//
// What was flushed may still stand in the CQ then. Some NICs take it away with the QP, as this one
// does, others leave it, so the program has to poll until nothing is left before it frees what the
// wr_ids point to: it is told of when it polls that CQ again and has done so too early.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/memory/gone_owners.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

// The oldest signaled request that is outstanding, and how many there are.
struct Undrained {
  size_t count = 0;
  Request oldest;
};

Undrained look(QueuePair& qp) {
  Undrained result;
  std::lock_guard lock(qp.sends.lock);
  for (size_t i = 0; qp.sends.is_tracked && i < qp.sends.size(); ++i) {
    if (!qp.sends.at(i).is_signaled) continue;
    if (result.count++ == 0) result.oldest = qp.sends.at(i);
  }
  return result;
}

// The requests of a QP that is being destroyed, which its error has flushed or will.
struct Flushed : Note {
  std::vector<GoneOwner> owners;
  uint64_t completions_taken = 0;  // of its CQs, by then
};
constexpr size_t kFlushedMost = 256;

void collect(WorkQueue& queue, const std::shared_ptr<CompletionQueue>& cq,
             std::vector<GoneOwner>& owners) {
  std::lock_guard lock(queue.lock);
  for (size_t i = 0; queue.is_tracked && i < queue.size() && owners.size() < kFlushedMost; ++i) {
    const Request& request = queue.at(i);
    GoneOwner owner;
    owner.cq = cq;
    owner.wr_id = request.wr_id;
    owner.posted = {request.posted_at, request.posted_by};
    owners.push_back(std::move(owner));
  }
}

uint64_t completions_taken(const QueuePair& qp) {
  uint64_t count = 0;
  for (const auto& cq : {qp.send_cq, qp.recv_cq}) {
    if (cq != nullptr) count += cq->completions_taken;
  }
  return count;
}

class DestroyedUndrained : public Detector {
 public:
  DestroyedUndrained() : Detector("destroyed-undrained", kNextPolls) {}

  void on_going(const Call& call, Object& object) override {
    if (object.kind != ROCEMU_CHECK_QP) return;
    auto& qp = static_cast<QueuePair&>(object);
    const ibv_qp_state state = qp.state;
    auto& flushed = note<Flushed>(qp);
    flushed.owners.clear();
    flushed.completions_taken = completions_taken(qp);
    if (state == IBV_QPS_ERR) {
      if (qp.send_cq != nullptr) collect(qp.sends, qp.send_cq, flushed.owners);
      if (qp.recv_cq != nullptr) collect(qp.receives, qp.recv_cq, flushed.owners);
    }
    if (state != IBV_QPS_RTS && state != IBV_QPS_SQD) return;
    const Undrained undrained = look(qp);
    if (undrained.count > 0 && is_new(call)) tell(call, qp, undrained);
  }

  void on_gone(const Call& call, Object& object) override {
    if (object.kind == ROCEMU_CHECK_CQ)
      return owners_.forget(static_cast<CompletionQueue&>(object));
    if (object.kind != ROCEMU_CHECK_QP) return;
    auto& flushed = note<Flushed>(object);
    // Another thread may have polled them while the QP was being destroyed.
    const bool are_there =
        flushed.completions_taken == completions_taken(static_cast<QueuePair&>(object));
    if (!are_there) flushed.owners.clear();
    const std::string name = object.name();
    for (GoneOwner& owner : flushed.owners) {
      owner.qp = name;
      owner.destroyed = {call.place(), call.thread()};
      CompletionQueue& cq = *owner.cq;
      owners_.add(std::move(owner));
      cq.tells_next_poll = true;
    }
    flushed.owners.clear();
  }

  void on_memory_going(const Call& call, const void* address, size_t bytes, const char*) override {
    owners_.note_freed({reinterpret_cast<uintptr_t>(address), bytes},
                       {call.place(), call.thread()});
  }

  void on_next_poll(const Call& call, CompletionQueue& cq, int count) override {
    const auto owner = owners_.take_freed(cq);
    if (owner && is_new(call)) tell(call, cq, *owner);
    // Where nothing is in the CQ any more nothing can come of those that are gone.
    if (count == 0) return owners_.forget(cq);
    if (owners_.has(cq)) cq.tells_next_poll = true;
  }

 private:
  void tell(const Call& call, const CompletionQueue& cq, const GoneOwner& owner) {
    Finding finding;
    finding.sentence = cq.name() + " is polled, where the flushed request with wr_id " +
                       hex(owner.wr_id) + " of " + owner.qp +
                       " may still stand, which was destroyed: that is the address of memory "
                       "that was freed since.";
    finding.why =
        "What stands in a CQ when a QP is destroyed may stay there or be gone with the QP (IBTA "
        "10.2.4.4). This NIC takes it away, as mlx5 does; with others, Linux's rxe among them, the "
        "poll gives a completion whose wr_id points to what is somebody else's by then.";
    finding.advice =
        "After the QP was moved to ERROR poll until all its requests have come back, or, after it "
        "was destroyed, until the CQ is empty, and only then free what they belong to.";
    finding.objects = {owner.qp, cq.name()};
    finding.related = {{"the memory was given back here", owner.freed.place, owner.freed.thread},
                       {"the QP was destroyed here", owner.destroyed.place, owner.destroyed.thread},
                       {"the request was posted here", owner.posted.place, owner.posted.thread}};
    report(call, finding);
  }

  void tell(const Call& call, const QueuePair& qp, const Undrained& undrained) {
    const Request& oldest = undrained.oldest;
    Finding finding;
    finding.sentence =
        qp.name() + " is destroyed with " +
        count_of(undrained.count, "signaled send request", "signaled send requests") +
        " outstanding whose completion was never polled, the oldest with wr_id " +
        hex(oldest.wr_id) + " (" + name_of(oldest.opcode) + ").";
    finding.why =
        "What is outstanding when a QP is destroyed may or may not reach the peer, and its "
        "completions may be gone or come later (IBTA 10.2.4.4, ibv_destroy_qp(3)). On a fast or "
        "idle "
        "NIC the data has mostly left by then; on a busy one the peer waits for it, and a "
        "completion "
        "with this wr_id is found by whoever polls the CQ next.";
    finding.advice =
        "Poll the completions before, or move the QP to ERROR and poll until the requests are "
        "flushed.";
    finding.objects = {qp.name()};
    finding.related = {{"the oldest request was posted here", oldest.posted_at, oldest.posted_by},
                       {"the QP was made here", qp.made_at, qp.made_by}};
    report(call, finding);
  }

  GoneOwners owners_;
};

}  // namespace

std::unique_ptr<Detector> make_destroyed_undrained() {
  return std::make_unique<DestroyedUndrained>();
}

}  // namespace rocemu::check
