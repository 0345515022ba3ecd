// receive-too-late: a message came to a QP that could be reached and had no receive.
#include <atomic>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

constexpr const char* kAdvice =
    "Post receives before the QP is moved to RTR, or at the latest before the peer is told that it "
    "can send; a reset takes away those that were posted.";

// The place where the QP's first receive was posted, since it was last reset; with the queue
// locked.
struct FirstReceive final : ConnectionNote {
  std::atomic<PlaceId> at = kNoPlace;
  std::atomic<pid_t> by = 0;
};

class ReceiveTooLate final : public ConnectionDetector {
 public:
  ReceiveTooLate() : ConnectionDetector("receive-too-late", kReceives) {}

  void on_receive_posting(const Call& call, QueuePair* qp, SharedReceiveQueue*,
                          Request& request) override {
    if (qp == nullptr) return;
    auto& first = note<FirstReceive>(*qp);
    if (first.at.load(std::memory_order_relaxed) != kNoPlace) return;
    first.by = request.posted_by;
    first.at = call.place();
  }

 private:
  ConnectionNote& note_of(QueuePair& qp) override { return note<FirstReceive>(qp); }
  void on_reset(QueuePair& qp) override { note<FirstReceive>(qp).at = kNoPlace; }

  // A queue that runs dry later is flow control by RNR NAKs, which is permitted. One that has never
  // had a receive was connected too early.
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    if (qp.srq == nullptr && facts.receives_missing_before_first > 0 && qp.type == IBV_QPT_RC)
      return refused(qp, facts);
    if (qp.srq == nullptr && facts.receives_missing_before_first > 0 && qp.type == IBV_QPT_UC)
      return lost(qp, facts);
    if ((facts.flags & ROCEMU_INSPECTED_RNR_EXCEEDED) != 0) return given_up(qp, facts);
    return std::nullopt;
  }

  Finding refused(QueuePair& qp, const rocemu_inspect_qp_reply& facts) {
    Finding finding;
    finding.sentence =
        qp.name() + " could be reached, but had no receive when its first message came: " +
        count_of(facts.receives_missing_before_first, "RNR NAK has", "RNR NAKs have") +
        (facts.receives_taken > 0 ? " hidden that, and it cost " : " hidden that, for at least ") +
        time_text(facts.waited_before_first_ns) + ".";
    finding.why =
        "The peer tries again as often as its rnr_retry says, and after what min_rnr_timer says "
        "(IBTA vol 1, 9.7.5.2.8): with rnr_retry 7 that is for ever, with another number the "
        "connection ends with IBV_WC_RNR_RETRY_EXC_ERR, on a faster network or a slower host "
        "first. Some NICs do not retry at all.";
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    show_receive(qp, finding);
    return finding;
  }

  Finding lost(QueuePair& qp, const rocemu_inspect_qp_reply& facts) {
    Finding finding;
    finding.sentence =
        qp.name() + " could be reached, but had no receive when its first message came: " +
        count_of(facts.receives_missing_before_first, "message is", "messages are") + " lost.";
    finding.why =
        "An unreliable connection drops a message that finds no receive, and nobody is told (IBTA "
        "vol 1, 9.8.2.2.5). Whether the receive is there in time is a matter of speed.";
    finding.advice = kAdvice;
    finding.objects = {qp.name()};
    show_receive(qp, finding);
    return finding;
  }

  void show_receive(QueuePair& qp, Finding& finding) {
    const auto& first = note<FirstReceive>(qp);
    if (first.at != kNoPlace)
      finding.related.push_back({"its first receive was posted here", first.at, first.by});
  }

  static unsigned rnr_retry(QueuePair& qp) {
    std::lock_guard lock(qp.attr_lock);
    return qp.attr.rnr_retry;
  }

  Finding given_up(QueuePair& qp, const rocemu_inspect_qp_reply& facts) {
    Finding finding;
    finding.sentence =
        qp.name() + " has failed because its peer" +
        ((facts.flags & ROCEMU_INSPECTED_MET) != 0 ? ", " + peer_text(facts) + "," : "") +
        " had no receive, in " + std::to_string(rnr_retry(qp) + 1u) + " attempts.";
    finding.why =
        "rnr_retry says how often a message that finds no receive is sent again, with the wait "
        "that "
        "the peer's min_rnr_timer asks for (ibv_modify_qp(3); IBTA vol 1, 9.7.5.2.8). With larger "
        "numbers, or a peer that is a little faster, it would have worked by luck.";
    finding.advice =
        "Have the peer post receives before it lets this end send, and count credits; or set "
        "rnr_retry to 7 where waiting is meant.";
    finding.objects = {qp.name()};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_receive_too_late() { return std::make_unique<ReceiveTooLate>(); }

}  // namespace rocemu::check
