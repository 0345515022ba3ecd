// destroyed-undrained: a QP is destroyed while send requests of which the program wants to hear are
// outstanding. In the error states the program knows that they are over, and how.
#include "verbs_shim/checker/detectors/makers.h"
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

class DestroyedUndrained : public Detector {
 public:
  DestroyedUndrained() : Detector("destroyed-undrained", kNothing) {}

  void on_going(const Call& call, Object& object) override {
    if (object.kind != ROCEMU_CHECK_QP) return;
    auto& qp = static_cast<QueuePair&>(object);
    const ibv_qp_state state = qp.state;
    if (state != IBV_QPS_RTS && state != IBV_QPS_SQD) return;
    const Undrained undrained = look(qp);
    if (undrained.count > 0 && is_new(call)) tell(call, qp, undrained);
  }

 private:
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
};

}  // namespace

std::unique_ptr<Detector> make_destroyed_undrained() {
  return std::make_unique<DestroyedUndrained>();
}

}  // namespace rocemu::check
