// send-buffer-changed: the bytes that a posted request is to send are others when it completes.
//
// A sum is taken before the NIC sees the request, and again when the program is about to hear that
// it is over. Changes that a receive, a READ or a peer may have made meanwhile are not the
// program's doing (memory/nic_writes.h).
#include <algorithm>
#include <atomic>

#include "verbs_shim/checker/detectors/doubting_detector.h"
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/memory/byte_sum.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

struct Ending : Note {
  std::atomic<bool> is_so = false;  // the QP is being reset or destroyed
};

bool sends_bytes(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
      return true;
    default:
      return false;
  }
}

class SendBufferChanged : public DoubtingDetector {
 public:
  SendBufferChanged() : DoubtingDetector("send-buffer-changed", kSends | kReceives) {}

  void on_send_posting(const Call&, QueuePair& qp, Request& request) override {
    if (request.is_inline || request.sges.empty() || !sends_bytes(request.opcode)) return;
    const std::vector<Span>* const spans = find_spans(*qp.context, request);
    if (spans == nullptr || spans->empty()) return;
    request.marks[kNicWrites] = writes_.now();
    request.marks[kSum] = byte_sum(*spans, request.index);
  }

  void on_send_done(const Call& call, QueuePair& qp, Request& request,
                    const ibv_wc* completion) override {
    if (request.writes_locally()) return note_write(*qp.context, request);
    if (request.marks[kSum] == 0 || note<Ending>(qp).is_so) return;
    if (completion != nullptr && completion->status != IBV_WC_SUCCESS) return;
    if (qp.may_be_answered(request)) return;
    const std::vector<Span>* const spans = find_spans(*qp.context, request);
    if (spans == nullptr) return;
    const uint64_t sum = byte_sum(*spans, request.index);
    if (sum == 0 || sum == request.marks[kSum]) return;
    if (writes_.may_meet(*spans, request.marks[kNicWrites])) return;
    if (may_be_awaited(model(), *spans, &qp.sends, &request)) return;
    if (!is_new(request.posted_at)) return;
    show(call, qp, request, *spans);
  }

  void on_receive_done(const Call&, QueuePair* qp, SharedReceiveQueue* srq, Request& request,
                       const ibv_wc*, bool) override {
    note_write(qp != nullptr ? *qp->context : *srq->context, request);
  }

  void on_going(const Call& call, Object& object) override {
    DoubtingDetector::on_going(call, object);
    if (object.kind == ROCEMU_CHECK_QP) note<Ending>(object).is_so = true;
  }
  void on_not_gone(const Call&, Object& object, int) override {
    if (object.kind == ROCEMU_CHECK_QP) note<Ending>(object).is_so = false;
  }
  void on_modifying(const Call& call, QueuePair& qp, const ibv_qp_attr& attr, int mask) override {
    DoubtingDetector::on_modifying(call, qp, attr, mask);
    if ((mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RESET) note<Ending>(qp).is_so = true;
  }
  void on_modified(const Call&, QueuePair& qp, const ibv_qp_attr&, int, ibv_qp_state,
                   int) override {
    note<Ending>(qp).is_so = false;
  }

 private:
  void note_write(const Context& context, Request& request) {
    if (const std::vector<Span>* const spans = find_spans(context, request)) {
      writes_.add(*spans);
    } else if (std::any_of(request.sges.begin(), request.sges.end(),
                           [&context](const ibv_sge& sge) {
                             return context.find_region(sge.lkey) == nullptr;
                           })) {
      // Nobody knows any more where the region was.
      const Span everywhere = {0, UINTPTR_MAX};
      writes_.add({&everywhere, 1});
    }
  }

  void show(const Call& call, QueuePair& qp, const Request& request,
            const std::vector<Span>& spans) {
    size_t bytes = 0;
    for (const Span& span : spans) bytes += span.bytes;
    Finding finding;
    finding.sentence = std::string("The buffer of a ") + name_of(request.opcode) + " on " +
                       qp.name() + " with wr_id " + hex(request.wr_id) + ", " +
                       count_of(bytes, "byte", "bytes") + " at " + hex(spans.front().from) +
                       ", was changed between its post and its completion.";
    finding.why =
        "The buffer must not be touched until the request has completed (ibv_post_send(3): \"The "
        "buffers used by a WR can only be safely reused after WR the request is fully executed and "
        "a "
        "work completion has been retrieved\"). One NIC has fetched the bytes by then and the next "
        "has "
        "not, and when a packet is lost they are fetched again.";
    finding.advice =
        "Write to the buffer when ibv_poll_cq() has given the completion of this request, or of a "
        "signaled one after it on the same QP; or post it with IBV_SEND_INLINE, or use another "
        "buffer for the next message.";
    finding.objects = {qp.name()};
    if (const auto region = qp.context->find_region(request.sges.front().lkey))
      finding.objects.push_back(region->name());
    finding.related = {
        {"the bytes were others when its completion was taken here", call.place(), call.thread()}};
    report_or_doubt(
        {std::move(finding), request.posted_at, "ibv_post_send", request.posted_by, spans});
  }

  NicWrites writes_;
};

}  // namespace

std::unique_ptr<Detector> make_send_buffer_changed() {
  return std::make_unique<SendBufferChanged>();
}

}  // namespace rocemu::check
