// unaligned-atomic: the operand of an atomic is 8 bytes at a multiple of 8 (IBTA 9.4.5, C9-188).
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

constexpr uint64_t kOperandBytes = 8;

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
         opcode == IBV_WR_ATOMIC_WRITE;
}

class UnalignedAtomic : public Detector {
 public:
  UnalignedAtomic() : Detector("unaligned-atomic", kSends) {}

  void on_send_posting(const Call& call, QueuePair& qp, Request& request) override {
    if (!is_atomic(request.opcode) || request.remote_address % kOperandBytes == 0) return;
    if (!is_new(call)) return;
    Finding finding;
    finding.sentence = "The atomic request with wr_id " + hex(request.wr_id) + " (" +
                       name_of(request.opcode) + ") of " + qp.name() + " has the remote address " +
                       hex(request.remote_address) + ", which is no multiple of 8.";
    finding.why =
        "The responder refuses it as an invalid request (IBTA 9.4.5), and the QP fails; some NICs "
        "do "
        "it all the same, and no longer atomically.";
    finding.advice = "Align the remote variable to 8 bytes.";
    finding.objects = {qp.name()};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_unaligned_atomic() { return std::make_unique<UnalignedAtomic>(); }

}  // namespace rocemu::check
