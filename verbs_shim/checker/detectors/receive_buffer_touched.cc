// receive-buffer-touched: a place that a posted receive, READ or atomic waits for is written by the
// program, or posted again.
//
// A write by the program is seen where the NIC writes nothing: behind the message, when the receive
// has completed. Each receive has three sums: of its first half, of the next three eighths and of
// the rest.
#include <algorithm>
#include <array>

#include "verbs_shim/checker/detectors/doubting_detector.h"
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/memory/byte_sum.h"
#include "verbs_shim/checker/memory/posted_targets.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

size_t total_of(std::span<const Span> spans) {
  size_t bytes = 0;
  for (const Span& span : spans) bytes += span.bytes;
  return bytes;
}

// Bytes [from, to) of all, as if they stood one behind the other.
std::vector<Span> slice(std::span<const Span> spans, size_t from, size_t to) {
  std::vector<Span> result;
  size_t at = 0;
  for (const Span& span : spans) {
    const size_t begin = std::max(from, at);
    const size_t end = std::min(to, at + span.bytes);
    if (begin < end) result.push_back({span.from + (begin - at), end - begin});
    at += span.bytes;
  }
  return result;
}

struct Part {
  Mark mark;
  size_t from;
  size_t to;
};
std::array<Part, 3> parts_of(size_t bytes) {
  const size_t half = bytes / 2;
  const size_t most = bytes - bytes / 8;
  return {{{kSum, 0, half}, {kSecondSum, half, most}, {kThirdSum, most, bytes}}};
}

class ReceiveBufferTouched : public DoubtingDetector {
 public:
  ReceiveBufferTouched() : DoubtingDetector("receive-buffer-touched", kSends | kReceives) {}

  void on_send_posting(const Call&, QueuePair& qp, Request& request) override {
    if (!request.writes_locally() || !qp.sends.is_tracked) return;
    if (const std::vector<Span>* const spans = find_spans(*qp.context, request))
      targets_.add(qp.sends, request, *spans);
  }

  void on_send_done(const Call& call, QueuePair& qp, Request& request,
                    const ibv_wc* completion) override {
    if (!request.writes_locally()) return;
    const std::vector<Span>* const spans = find_spans(*qp.context, request);
    if (spans == nullptr) return targets_.drop(qp.sends, request);
    const bool is_good = completion == nullptr || completion->status == IBV_WC_SUCCESS;
    if (is_good) look_for_other(call, qp, qp.sends, request, *spans, total_of(*spans));
    writes_.add(*spans);
    targets_.remove(qp.sends, request, *spans);
  }

  void on_receive_posting(const Call&, QueuePair* qp, SharedReceiveQueue* srq,
                          Request& request) override {
    const Object& owner = qp != nullptr ? static_cast<const Object&>(*qp) : *srq;
    const WorkQueue& queue = queue_of(qp, srq);
    if (!queue.is_tracked) return;
    const std::vector<Span>* const spans = find_spans(*owner.context, request);
    if (spans == nullptr || spans->empty()) return;
    targets_.add(queue, request, *spans);
    if (targets_.is_sink(*spans)) return;
    request.marks[kNicWrites] = writes_.now();
    for (const Part& part : parts_of(total_of(*spans)))
      request.marks[part.mark] = byte_sum(slice(*spans, part.from, part.to), request.index);
  }

  void on_receive_done(const Call& call, QueuePair* qp, SharedReceiveQueue* srq, Request& request,
                       const ibv_wc* completion, bool is_sure) override {
    const Object& owner = qp != nullptr ? static_cast<const Object&>(*qp) : *srq;
    WorkQueue& queue = queue_of(qp, srq);
    const std::vector<Span>* const found = find_spans(*owner.context, request);
    if (found == nullptr) return targets_.drop(queue, request);
    const std::vector<Span>& spans = *found;
    if (completion != nullptr && completion->status == IBV_WC_SUCCESS && is_sure &&
        takes_messages(srq)) {
      const bool has_data = completion->opcode == IBV_WC_RECV;
      const size_t received = has_data ? completion->byte_len : 0;
      look_for_other(call, owner, queue, request, spans, received);
      if (!may_have_had_another(qp)) look_behind(call, owner, queue, request, spans, received);
    }
    writes_.add(spans);
    targets_.remove(queue, request, spans);
  }

  void on_not_posted(const WorkQueue& queue, const Request& request) override {
    targets_.remove(queue, request, request.spans);
  }

  void on_track_lost(const WorkQueue& queue) override { targets_.forget(queue); }

  void on_gone(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_QP) {
      auto& qp = static_cast<QueuePair&>(object);
      targets_.forget(qp.sends);
      targets_.forget(qp.receives);
    } else if (object.kind == ROCEMU_CHECK_SRQ) {
      targets_.forget(static_cast<SharedReceiveQueue&>(object).receives);
    }
  }

 private:
  static WorkQueue& queue_of(QueuePair* qp, SharedReceiveQueue* srq) {
    return qp != nullptr ? qp->receives : srq->receives;
  }
  // An SRQ for tag matching has completions of other kinds, too.
  static bool takes_messages(const SharedReceiveQueue* srq) {
    return srq == nullptr || srq->type == IBV_SRQT_BASIC || srq->type == IBV_SRQT_XRC;
  }

  // Over UC the receive of a message whose rest is lost may be that of the next one.
  static bool may_have_had_another(const QueuePair* qp) {
    return qp != nullptr && qp->type == IBV_QPT_UC;
  }

  void look_for_other(const Call& call, const Object& owner, const WorkQueue& queue,
                      const Request& request, std::span<const Span> spans, size_t written_bytes) {
    const std::optional<Target> other = targets_.other(queue, request, spans, written_bytes);
    if (!other || !is_new(other->posted_at)) return;
    Finding finding = about(owner);
    finding.sentence = "The " + describe(request) + " on " + owner.name() +
                       " has put its data where another request, with wr_id " + hex(other->wr_id) +
                       ", waits for its own: " + count_of(other->span.bytes, "byte", "bytes") +
                       " at " + hex(other->span.from) + " were posted for both at once.";
    finding.related = {{"the first one was posted here", request.posted_at, request.posted_by},
                       {"its completion was taken here", call.place(), call.thread()}};
    report(other->posted_at, other->is_send ? "ibv_post_send" : "ibv_post_recv", other->posted_by,
           finding);
  }

  void look_behind(const Call& call, const Object& owner, WorkQueue& queue, const Request& request,
                   std::span<const Span> spans, size_t received) {
    for (const Part& part : parts_of(total_of(spans))) {
      if (part.from < received || request.marks[part.mark] == 0) continue;
      const std::vector<Span> bytes = slice(spans, part.from, part.to);
      const uint64_t sum = byte_sum(bytes, request.index);
      if (sum == 0 || sum == request.marks[part.mark]) continue;
      if (writes_.may_meet(bytes, request.marks[kNicWrites]) ||
          may_be_awaited(model(), bytes, &queue, &request) || !is_new(request.posted_at))
        return;
      Finding finding = about(owner);
      finding.sentence = "The buffer of the " + describe(request) + " on " + owner.name() + ", " +
                         count_of(total_of(spans), "byte", "bytes") + " at " +
                         hex(spans.front().from) +
                         ", was written by the program while it was posted: bytes behind the "
                         "message, from byte " +
                         std::to_string(part.from) + " on, are others.";
      finding.related = {{"its completion was taken here", call.place(), call.thread()}};
      report_or_doubt(
          {std::move(finding), request.posted_at, "ibv_post_recv", request.posted_by, bytes});
      return;
    }
  }

  static std::string describe(const Request& request) {
    return std::string(request.is_send ? name_of(request.opcode) : "receive") + " with wr_id " +
           hex(request.wr_id);
  }

  static Finding about(const Object& owner) {
    Finding finding;
    finding.why =
        "From the post to the completion that was polled the buffer belongs to the NIC, which may "
        "write any of it at any time (ibv_post_recv(3), ibv_post_send(3): buffers \"can only be "
        "safely reused after\" the completion). Whether a message is lost by that is a matter of "
        "when "
        "it comes.";
    finding.advice =
        "Give each posted request a place of its own, prepare it before the post, and leave it "
        "alone "
        "until ibv_poll_cq() gave its completion.";
    finding.objects = {owner.name()};
    return finding;
  }

  PostedTargets targets_;
  NicWrites writes_;
};

}  // namespace

std::unique_ptr<Detector> make_receive_buffer_touched() {
  return std::make_unique<ReceiveBufferTouched>();
}

}  // namespace rocemu::check
