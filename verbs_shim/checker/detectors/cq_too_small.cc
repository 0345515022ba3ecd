// cq-too-small: more requests are outstanding that complete to a CQ than it has entries. Should
// they all be flushed, or the program be slow, the CQ overruns, and with it all its QPs are lost
// (IBTA 10.2.6.3, 11.6.3.1).
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

struct Pending : Note {
  std::atomic<int64_t> completions = 0;  // completions that are to come or wait to be polled
  std::atomic<bool> told = false;
};

// The number of requests among the first `most` of `list` that were taken and give a completion.
template <typename Wr, typename Counts>
int64_t count_taken(const Wr* list, const Wr* bad, int error, size_t most, Counts counts) {
  int64_t count = 0;
  for (const Wr* wr = list; wr != nullptr && most > 0 && (error == 0 || wr != bad); wr = wr->next) {
    --most;
    if (counts(*wr)) ++count;
  }
  return count;
}

class CqTooSmall : public Detector {
 public:
  CqTooSmall() : Detector("cq-too-small", kSends | kReceives) {}

  void on_sends_posted(const Call& call, QueuePair& qp, const ibv_send_wr* list, int error,
                       const ibv_send_wr* bad) override {
    if (qp.send_cq == nullptr) return;
    const int64_t count =
        count_taken(list, bad, error, qp.sends.size(), [&](const ibv_send_wr& wr) {
          return qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
        });
    add(call, *qp.send_cq, qp, count);
  }

  void on_receives_posted(const Call& call, QueuePair* qp, SharedReceiveQueue*,
                          const ibv_recv_wr* list, int error, const ibv_recv_wr* bad) override {
    if (qp == nullptr || qp->recv_cq == nullptr) return;
    const int64_t count =
        count_taken(list, bad, error, qp->receives.size(), [](const ibv_recv_wr&) { return true; });
    add(call, *qp->recv_cq, *qp, count);
  }

  void on_send_done(const Call&, QueuePair& qp, Request& request, const ibv_wc*) override {
    if (request.is_signaled && qp.send_cq != nullptr) --note<Pending>(*qp.send_cq).completions;
  }

  void on_receive_done(const Call&, QueuePair* qp, SharedReceiveQueue*, Request&, const ibv_wc*,
                       bool) override {
    if (qp != nullptr && qp->recv_cq != nullptr) --note<Pending>(*qp->recv_cq).completions;
  }

 private:
  void add(const Call& call, CompletionQueue& cq, const QueuePair& qp, int64_t count) {
    auto& pending = note<Pending>(cq);
    const int64_t now = pending.completions += count;
    if (now <= int64_t{cq.entries} || cq.ignores_overrun || !cq.is_tracked) return;
    if (!pending.told.exchange(true) && is_new(call)) tell(call, cq, qp, now);
  }

  void tell(const Call& call, const CompletionQueue& cq, const QueuePair& qp, int64_t pending) {
    Finding finding;
    finding.sentence = std::to_string(pending) + " requests are outstanding that complete to " +
                       cq.name() + ", the last of them of " + qp.name() +
                       ": more than it has room for, should they complete before it is polled.";
    finding.why =
        "\"The CQ must be large enough for all outstanding requests\" (IBTA 10.2.6.3): where the "
        "program polls faster than the NIC completes nothing is seen. When the QP fails and all is "
        "flushed at once, or on a NIC that rounds sizes up less, the CQ overruns: an asynchronous "
        "IBV_EVENT_CQ_ERR, and all QPs of the CQ are lost.";
    finding.advice =
        "Make the CQ with room for the send and receive queues of all its QPs, or post less at a "
        "time.";
    finding.objects = {cq.name(), qp.name()};
    finding.related = {{"the CQ was made here", cq.made_at, cq.made_by}};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_cq_too_small() { return std::make_unique<CqTooSmall>(); }

}  // namespace rocemu::check
