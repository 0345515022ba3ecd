// remote-race: two accesses to the same bytes by RDMA that nothing orders, or an RDMA atomic and
// the processor. The NIC finds those that met (emulator/inspection/access_log.h); of the program's
// own requests it is enough that both were open (open_accesses.h).
#include <algorithm>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/detectors/nic/finding_detector.h"
#include "verbs_shim/checker/detectors/nic/peer_text.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

std::string request_text(uint32_t opcode, uint64_t wr_id) {
  return std::string(name_of(static_cast<ibv_wr_opcode>(opcode))) + " with wr_id " + hex(wr_id);
}

class RemoteRace final : public FindingDetector {
 public:
  RemoteRace()
      : FindingDetector("remote-race",
                        1u << ROCEMU_FOUND_RACE | 1u << ROCEMU_FOUND_PROCESSOR_RACE) {}

  void on_send_posting(const Call& call, QueuePair& qp, Request& request) override {
    FindingDetector::on_send_posting(call, qp, request);
    const auto other = open_.on_posting(qp, request);
    if (!other || !is_new(call)) return;
    Finding finding = unordered(
        "The " + request_text(request.opcode, request.wr_id) + " of " + qp.name() + " and the " +
            request_text(other->request.opcode, other->request.wr_id) + " of " + other->qp->name() +
            ", whose completion the program has not taken, reach the same "
            "bytes at " +
            hex(std::max(request.remote_address, other->request.address)) + ", rkey " +
            hex(request.rkey) + ", and nothing orders them.",
        false);
    finding.objects = {qp.name(), other->qp->name()};
    finding.related.push_back(
        {"the other request was posted here", other->request.posted_at, other->request.posted_by});
    report(call, finding);
  }
  void on_sends_posted(const Call&, QueuePair& qp, const ibv_send_wr*, int error,
                       const ibv_send_wr* bad) override {
    if (error == 0) return;
    // Requests that were not taken had the indices behind those that were. A list may have no end.
    uint64_t index = qp.sends.posted();
    const uint64_t end = index + size_t{qp.granted.max_send_wr} * 2 + 64;
    for (const ibv_send_wr* wr = bad; wr != nullptr && index < end; wr = wr->next)
      open_.on_done(qp, index++, wr->wr.rdma.rkey);
  }
  void on_send_done(const Call&, QueuePair& qp, Request& request, const ibv_wc*) override {
    if (request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_READ ||
        request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
      open_.on_done(qp, request.index, request.rkey);
  }
  void on_gone(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_QP) open_.forget(static_cast<QueuePair&>(object));
  }
  void on_modified(const Call&, QueuePair& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state,
                   int error) override {
    const bool is_reset = (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RESET;
    if (is_reset && error == 0) open_.forget(qp);
  }

 private:
  void pass_on(QueuePair& qp, const rocemu_nic_finding& found,
               const RemoteRequest& request) override {
    if (!is_new_at(qp, request)) return;
    report_at(qp, request,
              found.kind == ROCEMU_FOUND_RACE ? race(qp, found) : processor_race(qp, found));
  }

  static std::string bytes_text(const rocemu_nic_finding& found) {
    return count_of(found.length_bytes, "byte", "bytes") + " at " + hex(found.address) + ", rkey " +
           hex(found.rkey);
  }

  Finding race(QueuePair& qp, const rocemu_nic_finding& found) {
    const bool known = (found.flags & ROCEMU_FOUND_REQUEST_KNOWN) != 0;
    const bool mine = (found.flags & ROCEMU_FOUND_OTHER_IS_MINE) != 0;
    const bool own_queue = mine && found.qp_num == found.other_qp_num;
    const std::string first = known ? request_text(found.opcode, found.wr_id) : "request";
    const std::string second =
        known ? request_text(found.other_opcode, found.other_wr_id) : "request";
    const std::string whose = own_queue ? "the same QP before it"
                              : mine    ? "QP " + qpn_text(found.other_qp_num) + " of this program"
                                        : peer_text(found.other_qp_num, found.other_device);
    Finding finding =
        unordered("The " + first + " of " + qp.name() + " and the " + second + " of " + whose +
                      " were under way at the same time and reach the same " + bytes_text(found) +
                      ", and nothing orders them.",
                  own_queue);
    finding.objects = {qp.name()};
    if (mine && known) show_other(qp, found, finding);
    return finding;
  }

  void show_other(QueuePair& qp, const rocemu_nic_finding& found, Finding& finding) {
    const auto other = qp.context->find_qp(found.other_qp_num);
    if (other == nullptr) return;
    const RemoteRequest theirs = find_request(*other, found.other_wr_id);
    if (theirs.posted_at != kNoPlace)
      finding.related.push_back(
          {"the other request was posted here", theirs.posted_at, theirs.posted_by});
    if (other.get() != &qp) finding.objects.push_back(other->name());
  }

  static Finding unordered(std::string sentence, bool own_queue) {
    Finding finding;
    finding.sentence = std::move(sentence);
    if (own_queue) {
      finding.why =
          "A READ may be carried out after the requests that were posted behind it, and see what "
          "they wrote (IBTA vol 1, 10.8.3.3, table 79: 'F'). NICs with few requests under way, and "
          "short ones, do it in order.";
      finding.advice =
          "Post the later request with IBV_SEND_FENCE, or after the READ's completion.";
    } else {
      finding.why =
          "Requests of different QPs are in no order, and longer ones are carried out in pieces: "
          "which bytes stay, or are read, depends on the NIC, the network and the moment (IBTA vol "
          "1, 10.8.3.3 and 9.4.5). A NIC that serves QPs in turn, and a short path, hide it.";
      finding.advice =
          "Post one of them only after the completion of the other, let one QP do both, or give "
          "each writer bytes of its own; counters and locks are for atomics alone.";
    }
    return finding;
  }

  Finding processor_race(QueuePair& qp, const rocemu_nic_finding& found) {
    Finding finding;
    finding.sentence = "The " + request_text(found.opcode, found.wr_id) + " of " + qp.name() +
                       " found " + hex(found.found) + " at " + hex(found.address) + ", rkey " +
                       hex(found.rkey) + ", where the atomic before had left " + hex(found.left) +
                       ": a processor, or another NIC, changed it while this one was under way.";
    finding.why =
        "With IBV_ATOMIC_HCA operations are atomic among those of one device alone "
        "(ibv_query_device(3), atomic_cap; IBTA vol 1, 9.4.5): what a processor stores in between "
        "the NIC's load and store is lost. NICs that use the bus's atomics, and luck, hide it.";
    finding.advice =
        "Change the word by RDMA atomics alone, from its own host as well (a QP connected to "
        "itself), or only while no atomic can be under way.";
    finding.objects = {qp.name()};
    return finding;
  }

  OpenAccesses open_;
};

}  // namespace

std::unique_ptr<Detector> make_remote_race() { return std::make_unique<RemoteRace>(); }

}  // namespace rocemu::check
