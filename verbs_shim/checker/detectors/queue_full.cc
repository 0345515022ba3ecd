// queue-full: a send queue that can never get empty again, as no request in it gives a completion;
// and one that is full while nobody polls.
#include <chrono>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

using Clock = std::chrono::steady_clock;

// Posts that fail this long without a poll in between are a finding.
constexpr auto kPatience = std::chrono::seconds(1);

struct Fullness : Note {  // under the lock of the send queue
  bool told = false;
  bool is_full = false;
  Clock::time_point since;
  uint64_t cq_steps = 0;
};

class QueueFull : public Detector {
 public:
  QueueFull() : Detector("queue-full", kSends) {}

  void on_sends_posted(const Call& call, QueuePair& qp, const ibv_send_wr*, int error,
                       const ibv_send_wr*) override {
    const size_t depth = qp.granted.max_send_wr;
    const bool over = qp.sends.size() > depth;
    if (error != ENOMEM && !over) {
      if (error == 0 && qp.sends.size() == depth) return;
      return forget_failure(qp);
    }
    if (!qp.sends.is_tracked || qp.send_cq == nullptr) return;
    Fullness& fullness = note<Fullness>(qp);
    if (fullness.told) return;
    if (qp.sends.size() >= depth && !has_signaled(qp.sends)) {
      fullness.told = true;
      if (is_new(call)) tell_unsignaled(call, qp);
    } else if (error == ENOMEM) {
      look_for_polls(call, qp, fullness);
    }
  }

 private:
  static bool has_signaled(const WorkQueue& queue) {
    for (size_t i = queue.size(); i > 0; --i) {
      if (queue.at(i - 1).is_signaled) return true;
    }
    return false;
  }

  void forget_failure(QueuePair& qp) {
    if (Fullness* fullness = noted<Fullness>(qp)) fullness->is_full = false;
  }

  void look_for_polls(const Call& call, QueuePair& qp, Fullness& fullness) {
    const uint64_t steps = qp.send_cq->steps;
    const auto now = Clock::now();
    if (!fullness.is_full || fullness.cq_steps != steps) {
      fullness.is_full = true;
      fullness.since = now;
      fullness.cq_steps = steps;
    } else if (now - fullness.since > kPatience) {
      fullness.told = true;
      if (is_new(call)) tell_unpolled(call, qp);
    }
  }

  void tell_unsignaled(const Call& call, QueuePair& qp) {
    const Request& oldest = qp.sends.at(0);
    Finding finding;
    finding.sentence = qp.name() + " has " + std::to_string(qp.sends.size()) +
                       " send requests outstanding, its queue holds " +
                       std::to_string(qp.granted.max_send_wr) +
                       ", and none of them is signaled, so that none ever gives its place back.";
    finding.why =
        "A request's place is free when its completion, or that of a signaled one after it, has "
        "been "
        "polled (ibv_post_send(3), IBTA 10.8.5.1). Providers that reclaim earlier hide it; others "
        "answer ENOMEM from here on, for ever.";
    finding.advice = "Give at least one request in each " + std::to_string(qp.granted.max_send_wr) +
                     " the flag IBV_SEND_SIGNALED, and poll its completion.";
    finding.objects = {qp.name()};
    finding.related = {{"the oldest request was posted here", oldest.posted_at, oldest.posted_by},
                       {"the QP was made here", qp.made_at, qp.made_by}};
    report(call, finding);
  }

  void tell_unpolled(const Call& call, QueuePair& qp) {
    Finding finding;
    finding.sentence = "ibv_post_send for " + qp.name() +
                       " has failed with ENOMEM for more than a second, and nobody has polled " +
                       qp.send_cq->name() + " meanwhile.";
    finding.why =
        "A full send queue gets room when completions are polled, and not by waiting. With a "
        "deeper "
        "queue, or a program that is slower than its NIC, it never gets full.";
    finding.advice = "Poll the CQ when a post fails with ENOMEM.";
    finding.objects = {qp.name(), qp.send_cq->name()};
    for (size_t i = 0; i < qp.sends.size(); ++i) {
      const Request& request = qp.sends.at(i);
      if (!request.is_signaled) continue;
      finding.sentence += " The request with wr_id " + hex(request.wr_id) +
                          " is signaled: its completion would free " + std::to_string(i + 1) + ".";
      finding.related.push_back(
          {"that request was posted here", request.posted_at, request.posted_by});
      break;
    }
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_queue_full() { return std::make_unique<QueueFull>(); }

}  // namespace rocemu::check
