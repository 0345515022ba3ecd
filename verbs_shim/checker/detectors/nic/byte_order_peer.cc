// byte-order, of a QP number: the one that a QP was connected to is that of its peer with the bytes
// swapped.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

class ByteOrderOfPeer final : public ConnectionDetector {
 public:
  ByteOrderOfPeer() : ConnectionDetector("byte-order") {}

 private:
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    if (facts.swapped_peer == 0) return std::nullopt;
    const uint32_t given = __builtin_bswap32(facts.swapped_peer) >> 8;
    Finding finding;
    finding.sentence = qp.name() + " was connected to QP " + qpn_text(given) +
                       ", which the peer's device has not; it has QP " +
                       qpn_text(facts.swapped_peer) + ", the same with its bytes swapped.";
    finding.why =
        "dest_qp_num is in the host's byte order (ibv_modify_qp(3)). Packets to a QP that is not "
        "there are dropped in silence, and the requests fail with IBV_WC_RETRY_EXC_ERR; on a NIC "
        "where the number does exist they reach somebody else.";
    finding.advice = "Swap QP numbers with htonl and ntohl on their way between hosts, or nowhere.";
    finding.objects = {qp.name()};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_byte_order_of_peer() { return std::make_unique<ByteOrderOfPeer>(); }

}  // namespace rocemu::check
