// mtu-mismatch: the ends of a connection cut messages into packets of different sizes.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"

namespace rocemu::check {
namespace {

class MtuMismatch final : public ConnectionDetector {
 public:
  MtuMismatch() : ConnectionDetector("mtu-mismatch") {}

 private:
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    const bool met = (facts.flags & ROCEMU_INSPECTED_MET) != 0;
    if (!met || facts.own.path_mtu == facts.peer.path_mtu) return std::nullopt;
    Finding finding;
    finding.sentence = qp.name() + " has a path MTU of " +
                       std::to_string(mtu_bytes(facts.own.path_mtu)) + " bytes, and its peer, " +
                       peer_text(facts) + ", one of " +
                       std::to_string(mtu_bytes(facts.peer.path_mtu)) + ".";
    finding.why =
        "All packets of a message but its last one have to be as long as the path MTU "
        "(IBTA vol 1, 9.7.4.1.6), so it has to be the same at both ends. It works while each "
        "message fits the smaller one, and where both ports happen to have the same active_mtu; "
        "a longer message ends the connection, with IBV_WC_REM_INV_REQ_ERR as a rule.";
    finding.advice =
        "Tell the peer this end's path MTU when QP numbers are exchanged, and give both ends the "
        "smaller of the two (ibv_modify_qp(3), path_mtu).";
    finding.objects = {qp.name()};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_mtu_mismatch() { return std::make_unique<MtuMismatch>(); }

}  // namespace rocemu::check
