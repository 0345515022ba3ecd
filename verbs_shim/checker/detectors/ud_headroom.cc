// ud-headroom: a receive of a UD QP without room for the 40 bytes of the GRH.
#include <cinttypes>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

constexpr uint64_t kGrhBytes = 40;

uint64_t bytes_of(const Request& request) {
  uint64_t bytes = 0;
  for (const ibv_sge& sge : request.sges) bytes += sge.length;
  return bytes;
}

class UdHeadroom : public Detector {
 public:
  UdHeadroom() : Detector("ud-headroom", kReceives) {}

  // A receive of nothing is posted to see a queue flushed, and is none.
  void on_receive_posting(const Call& call, QueuePair* qp, SharedReceiveQueue*,
                          Request& request) override {
    if (qp == nullptr || qp->type != IBV_QPT_UD) return;
    const uint64_t bytes = bytes_of(request);
    if (bytes == 0 || bytes >= kGrhBytes || !is_new(call)) return;
    Finding finding = about(*qp, request);
    finding.sentence = "A receive of " + count_of(bytes, "byte", "bytes") + " was posted to " +
                       qp->name() + ": the GRH alone takes 40.";
    report(call, finding);
  }

  void on_receive_done(const Call& call, QueuePair* qp, SharedReceiveQueue* srq, Request& request,
                       const ibv_wc* completion, bool) override {
    if (completion == nullptr || completion->status != IBV_WC_LOC_LEN_ERR) return;
    std::shared_ptr<QueuePair> found;
    if (qp == nullptr && srq != nullptr) {
      found = srq->context->find_qp(completion->qp_num);
      qp = found.get();
    }
    if (qp == nullptr || qp->type != IBV_QPT_UD || !is_new(request.posted_at)) return;
    const uint64_t bytes = bytes_of(request);
    Finding finding = about(*qp, request);
    finding.sentence = "A datagram did not fit into the receive of " +
                       count_of(bytes, "byte", "bytes") + " with wr_id " + hex(request.wr_id) +
                       " on " + qp->name() + ", of which the GRH takes the first 40.";
    finding.related = {{"the completion that says so was taken here", call.place(), call.thread()}};
    report(request.posted_at, "ibv_post_recv", request.posted_by, finding);
  }

 private:
  static Finding about(const QueuePair& qp, const Request&) {
    Finding finding;
    finding.why =
        "The first 40 bytes of a receive on a UD QP are the Global Routing Header's, and with RoCE "
        "every datagram has one (IBTA 11.4.1.2, ibv_post_recv(3)). On InfiniBand within a subnet "
        "they "
        "often stay as they were, so a program that leaves no room for them may go well there "
        "until "
        "its messages are as long as its buffers.";
    finding.advice =
        "Post 40 bytes more than the longest message, or an element of 40 bytes before the others, "
        "and read the payload behind them.";
    finding.objects = {qp.name()};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_ud_headroom() { return std::make_unique<UdHeadroom>(); }

}  // namespace rocemu::check
