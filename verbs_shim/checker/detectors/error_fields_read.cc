// error-fields-read: of a failed completion only wr_id, status, qp_num and vendor_err mean anything
// (ibv_poll_cq(3)). The others are filled with values that are known again. A program that reads
// them by ibv_cq_ex is seen at once, and one that takes them from an ibv_wc when they come back in
// a request.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

// A length near the garbage is computed from it, by taking off a header: none is over 2^31
// (IBTA 9.7.7).
constexpr uint32_t kNear = 65536;

bool is_garbage_length(uint32_t bytes) {
  return bytes > ROCEMU_GARBAGE_BYTE_LEN - kNear && bytes < ROCEMU_GARBAGE_BYTE_LEN + kNear;
}

void fill_with_garbage(ibv_wc& wc) {
  wc.opcode = static_cast<ibv_wc_opcode>(ROCEMU_GARBAGE_OPCODE);
  wc.byte_len = ROCEMU_GARBAGE_BYTE_LEN;
  wc.imm_data = ROCEMU_GARBAGE_IMM_DATA;
  wc.src_qp = ROCEMU_GARBAGE_SRC_QP;
  wc.wc_flags = ROCEMU_GARBAGE_WC_FLAGS;
  wc.pkey_index = ROCEMU_GARBAGE_PKEY_INDEX;
  wc.slid = ROCEMU_GARBAGE_SLID;
  wc.sl = ROCEMU_GARBAGE_SL;
  wc.dlid_path_bits = ROCEMU_GARBAGE_DLID_PATH_BITS;
}

class ErrorFieldsRead : public Detector {
 public:
  ErrorFieldsRead()
      : Detector("error-fields-read", kSends | kReceives | kPolls | kMeaninglessReads) {}

  void on_polled(const Call&, CompletionQueue&, std::span<ibv_wc> completions) override {
    for (ibv_wc& wc : completions) {
      if (wc.status != IBV_WC_SUCCESS) fill_with_garbage(wc);
    }
  }

  void on_meaningless_read(const Call& call, CompletionQueue& cq, const char* field,
                           const ibv_wc& wc) override {
    if (!is_new(call)) return;
    tell(call, std::string(call.verb()) + " is called for a completion of " + cq.name() +
                   " with wr_id " + hex(wc.wr_id) + " that failed with " + name_of(wc.status) +
                   ", of which " + field + " has no meaning.");
  }

  void on_send_posting(const Call& call, QueuePair& qp, Request& request) override {
    look(call, qp, request);
    if (request.remote_qpn == ROCEMU_GARBAGE_SRC_QP && is_new(call)) {
      tell(call, "A send request for " + qp.name() +
                     " has the src_qp of a failed completion as its remote QP number.");
    }
  }

  void on_receive_posting(const Call& call, QueuePair* qp, SharedReceiveQueue* srq,
                          Request& request) override {
    look(call, qp != nullptr ? static_cast<Object&>(*qp) : *srq, request);
  }

 private:
  void look(const Call& call, const Object& queue, const Request& request) {
    for (const ibv_sge& sge : request.sges) {
      if (!is_garbage_length(sge.length) || !is_new(call)) continue;
      tell(call, "A request for " + queue.name() + " with wr_id " + hex(request.wr_id) +
                     " has a length that comes from the byte_len of a failed completion.");
    }
  }

  void tell(const Call& call, std::string sentence) {
    Finding finding;
    finding.sentence = std::move(sentence);
    finding.why =
        "\"If the completion status is other than IBV_WC_SUCCESS, only wr_id, status, qp_num and "
        "vendor_err are valid\" (ibv_poll_cq(3)). Some providers leave what the request had, "
        "others "
        "zeroes or what stood there before.";
    finding.advice = "Look at the status first, and know the request by its wr_id.";
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_error_fields_read() { return std::make_unique<ErrorFieldsRead>(); }

}  // namespace rocemu::check
