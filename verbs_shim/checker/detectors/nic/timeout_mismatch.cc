// timeout-mismatch: one end gives up long before the other, or the other never does.
#include <algorithm>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"

namespace rocemu::check {
namespace {

// Ends that differ by less may do so by purpose, and hardware doubles or quadruples timeouts
// itself.
constexpr uint64_t kFarApart = 16;

// The time that an end waits for an answer before it gives up; 0: for ever (IBTA vol 1, 9.7.6.1.3).
uint64_t patience_ns(const rocemu_qp_attr& attr) {
  return attr.timeout == 0 ? 0 : (uint64_t{4096} << (attr.timeout & 31)) * (attr.retry_cnt + 1u);
}

std::string patience_text(const rocemu_qp_attr& attr) {
  const std::string how = " (timeout " + std::to_string(attr.timeout) + ", retry_cnt " +
                          std::to_string(attr.retry_cnt) + ")";
  return attr.timeout == 0 ? "never gives up" + how
                           : "gives up after some " + time_text(patience_ns(attr)) + how;
}

class TimeoutMismatch final : public ConnectionDetector {
 public:
  TimeoutMismatch() : ConnectionDetector("timeout-mismatch") {}

 private:
  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    const bool met = (facts.flags & ROCEMU_INSPECTED_MET) != 0;
    if (!met || qp.type != IBV_QPT_RC || !has_begun(qp, facts)) return std::nullopt;
    const uint64_t own_ns = patience_ns(facts.own);
    const uint64_t peer_ns = patience_ns(facts.peer);
    const bool one_never = (own_ns == 0) != (peer_ns == 0);
    const bool far_apart = std::max(own_ns, peer_ns) / kFarApart >= std::min(own_ns, peer_ns);
    if (own_ns == peer_ns || (!one_never && !far_apart)) return std::nullopt;
    Finding finding;
    finding.sentence = qp.name() + " " + patience_text(facts.own) + ", and its peer, " +
                       peer_text(facts) + ", " + patience_text(facts.peer) + ".";
    finding.why =
        "When packets are lost or the network pauses, one end takes the connection for broken and "
        "the other one goes on waiting for it (IBTA vol 1, 9.7.6.1.3; ibv_modify_qp(3), timeout "
        "and retry_cnt). On a network that loses nothing it is never seen, and NICs with a least "
        "timeout of their own hide it.";
    finding.advice =
        "Configure IBV_QP_TIMEOUT and IBV_QP_RETRY_CNT alike at both ends, or agree on them when "
        "QP numbers are exchanged; with timeout 0 a lost peer is never noticed.";
    finding.objects = {qp.name()};
    return finding;
  }
  PlaceId place_of(const Connected& connected) const override { return connected.rts_at; }

  // An end in RTR has no timeout yet.
  static bool has_begun(const QueuePair&, const rocemu_inspect_qp_reply& facts) {
    const auto is_set = [](const rocemu_qp_attr& attr) {
      return attr.timeout != 0 || attr.retry_cnt != 0 || attr.rnr_retry != 0;
    };
    return is_set(facts.own) && is_set(facts.peer);
  }
};

}  // namespace

std::unique_ptr<Detector> make_timeout_mismatch() { return std::make_unique<TimeoutMismatch>(); }

}  // namespace rocemu::check
