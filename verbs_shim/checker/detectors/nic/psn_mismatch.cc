// psn-mismatch: one end begins with another PSN than the other one expects.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class PsnMismatch final : public ConnectionDetector {
 public:
  PsnMismatch() : ConnectionDetector("psn-mismatch") {}

 private:
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    const bool peer_began = (facts.flags & ROCEMU_INSPECTED_PEER_BEGAN) != 0;
    const bool began = (facts.flags & ROCEMU_INSPECTED_BEGAN) != 0;
    Finding finding;
    if (peer_began && facts.peer.sq_psn != facts.own.rq_psn) {
      finding.sentence = qp.name() + " expects PSN " + hex(facts.own.rq_psn) +
                         " first (rq_psn), and its peer, " + peer_text(facts) + ", began with " +
                         hex(facts.peer.sq_psn) + " (sq_psn).";
    } else if (began && facts.own.sq_psn != facts.peer.rq_psn) {
      finding.sentence = qp.name() + " began with PSN " + hex(facts.own.sq_psn) +
                         " (sq_psn), and its peer, " + peer_text(facts) + ", expects " +
                         hex(facts.peer.rq_psn) + " first (rq_psn).";
    } else {
      return std::nullopt;
    }
    finding.why =
        "A packet ahead of the expected PSN is refused until the retries are used up; one behind "
        "it is taken for a repeated one, acknowledged and thrown away (IBTA vol 1, 9.7.4.1): the "
        "sender is told of success and the data are lost. It works where both ends happen to "
        "begin with the same number, as with a constant.";
    finding.advice =
        "Give IBV_QP_RQ_PSN the number that the peer gives to IBV_QP_SQ_PSN, and the other way "
        "round, in network order or not at both ends alike; PSNs have 24 bits.";
    finding.objects = {qp.name()};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_psn_mismatch() { return std::make_unique<PsnMismatch>(); }

}  // namespace rocemu::check
