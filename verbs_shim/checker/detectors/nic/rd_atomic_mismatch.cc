// rd-atomic-mismatch: more READs and atomics may be under way than the peer keeps answers for, and
// the program has posted some.
#include <atomic>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/connection_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

// READs and atomics that were posted and are not over; changed with the send queue locked.
struct ReadsNote final : ConnectionNote {
  uint32_t now = 0;
  std::atomic<uint32_t> most = 0;
};

bool is_answered(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
         opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_WRITE || opcode == kFlush;
}

class RdAtomicMismatch final : public ConnectionDetector {
 public:
  RdAtomicMismatch() : ConnectionDetector("rd-atomic-mismatch", kSends) {}

  void on_send_posting(const Call&, QueuePair& qp, Request& request) override {
    if (!is_answered(request.opcode)) return;
    auto& reads = note<ReadsNote>(qp);
    ++reads.now;
    if (reads.now > reads.most) reads.most = reads.now;
  }
  void on_sends_posted(const Call&, QueuePair& qp, const ibv_send_wr*, int error,
                       const ibv_send_wr* bad) override {
    if (error == 0) return;
    // Refused requests have never been under way; `most` may count them, and is set back.
    auto& reads = note<ReadsNote>(qp);
    for (const ibv_send_wr* wr = bad; wr != nullptr && reads.now > 0; wr = wr->next) {
      if (!is_answered(wr->opcode)) continue;
      if (reads.most == reads.now) --reads.most;
      --reads.now;
    }
  }
  void on_send_done(const Call&, QueuePair& qp, Request& request, const ibv_wc*) override {
    if (!is_answered(request.opcode)) return;
    auto& reads = note<ReadsNote>(qp);
    if (reads.now > 0) --reads.now;
  }

 private:
  ConnectionNote& note_of(QueuePair& qp) override { return note<ReadsNote>(qp); }

  std::optional<Finding> judge(QueuePair& qp, const rocemu_inspect_qp_reply& facts) override {
    const bool met = (facts.flags & ROCEMU_INSPECTED_MET) != 0;
    if (!met || qp.type != IBV_QPT_RC) return std::nullopt;
    const uint32_t most = note<ReadsNote>(qp).most;
    if (most == 0 || facts.own.max_rd_atomic <= facts.peer.max_dest_rd_atomic) return std::nullopt;
    Finding finding;
    finding.sentence = qp.name() + " may have " + std::to_string(facts.own.max_rd_atomic) +
                       " RDMA READs and atomics under way (max_rd_atomic), and posted up to " +
                       std::to_string(most) + ", but its peer, " + peer_text(facts) +
                       ", keeps answers for no more than " +
                       std::to_string(facts.peer.max_dest_rd_atomic) + " (max_dest_rd_atomic).";
    finding.why =
        "A request beyond what the responder keeps answers for ends the connection with "
        "IBV_WC_REM_INV_REQ_ERR (IBTA vol 1, 9.7.4.1 and 9.9.3). It works while answers come fast "
        "enough, and on NICs that give a QP more than it asked for, or round up.";
    finding.advice =
        "Set max_rd_atomic to no more than the max_dest_rd_atomic of the peer, which is to be "
        "exchanged with the QP numbers; rdma_connect(3) does so with initiator_depth and "
        "responder_resources.";
    finding.objects = {qp.name()};
    return finding;
  }
  PlaceId place_of(const Connected& connected) const override { return connected.rts_at; }
};

}  // namespace

std::unique_ptr<Detector> make_rd_atomic_mismatch() { return std::make_unique<RdAtomicMismatch>(); }

}  // namespace rocemu::check
