// post-in-error: requests for a QP whose state does not take them, receives for one that takes them
// from an SRQ, and requests for one that has failed and of which the program was told a second ago.
#include <chrono>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

using Clock = std::chrono::steady_clock;

// Other threads need a while until they know.
constexpr auto kGrace = std::chrono::seconds(1);

struct Failure : Note {
  std::mutex lock;
  bool is_known = false;  // to the program, by a completion
  Clock::time_point since;
  PlaceId place = kNoPlace;
  pid_t thread = 0;
  ibv_wc_status status{};
};

class PostInError : public Detector {
 public:
  PostInError() : Detector("post-in-error", kSends | kReceives) {}

  void on_sends_posted(const Call& call, QueuePair& qp, const ibv_send_wr* list, int error,
                       const ibv_send_wr*) override {
    if (list == nullptr) return;
    const ibv_qp_state state = qp.qp()->state;
    const bool too_early = state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR;
    if (error == EINVAL && too_early) {
      if (is_new(call)) tell_early(call, qp, state, "send", "RTS");
    } else if (error == 0) {
      look_for_failure(call, qp);
    }
  }

  void on_receives_posted(const Call& call, QueuePair* qp, SharedReceiveQueue*,
                          const ibv_recv_wr* list, int error, const ibv_recv_wr*) override {
    if (qp == nullptr || list == nullptr || error != EINVAL) return;
    if (qp->srq != nullptr) {
      if (is_new(call)) tell_shared(call, *qp);
    } else if (qp->qp()->state == IBV_QPS_RESET && is_new(call)) {
      tell_early(call, *qp, IBV_QPS_RESET, "receive", "INIT");
    }
  }

  void on_send_done(const Call& call, QueuePair& qp, Request&, const ibv_wc* wc) override {
    if (wc == nullptr || wc->status == IBV_WC_SUCCESS || !is_stopped(qp)) return;
    auto& failure = note<Failure>(qp);
    std::lock_guard lock(failure.lock);
    if (failure.is_known) return;
    failure.is_known = true;
    failure.since = Clock::now();
    failure.place = call.place();
    failure.thread = call.thread();
    failure.status = wc->status;
  }

  // A program that moves the QP knows its state: it posts to a QP in ERROR to mark the queue's end.
  void on_modified(const Call&, QueuePair& qp, const ibv_qp_attr&, int mask, ibv_qp_state,
                   int error) override {
    if (error != 0 || (mask & IBV_QP_STATE) == 0) return;
    auto& failure = note<Failure>(qp);
    std::lock_guard lock(failure.lock);
    failure.is_known = false;
  }

 private:
  static bool is_stopped(const QueuePair& qp) {
    const ibv_qp_state state = qp.state;
    return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
  }

  void look_for_failure(const Call& call, QueuePair& qp) {
    if (!is_stopped(qp)) return;
    auto& failure = note<Failure>(qp);
    std::unique_lock lock(failure.lock);
    if (!failure.is_known || Clock::now() - failure.since < kGrace) return;
    const RelatedPlace told = {"the completion that said so was polled here", failure.place,
                               failure.thread};
    const std::string status = name_of(failure.status);
    lock.unlock();
    if (is_new(call)) tell_failed(call, qp, status, told);
  }

  void tell_early(const Call& call, const QueuePair& qp, ibv_qp_state state, const char* what,
                  const char* needed) {
    Finding finding;
    finding.sentence = std::string("A ") + what + " request is posted to " + qp.name() +
                       ", which is in state " + name_of(state) + " and takes none before " +
                       needed + ".";
    finding.why =
        "Posting there is an immediate error (IBTA 10.8.3.1, o10-2), but not every provider looks: "
        "some put the request into the queue, where it waits, is lost at the next transition, or "
        "is "
        "sent to nowhere.";
    finding.advice = std::string("Move the QP to ") + needed +
                     " first, and look at what ibv_post_send and ibv_post_recv return.";
    finding.objects = {qp.name()};
    finding.related = {{"the QP was made here", qp.made_at, qp.made_by}};
    report(call, finding);
  }

  void tell_shared(const Call& call, const QueuePair& qp) {
    Finding finding;
    finding.sentence = "A receive request is posted to " + qp.name() +
                       ", which takes its receives from " + qp.srq->name() +
                       " and has no receive queue of its own.";
    finding.why =
        "\"If the QP qp is associated with a shared receive queue, you must use the function "
        "ibv_post_srq_recv(), and not ibv_post_recv(), since the QP's own receive queue will not "
        "be "
        "used\" (ibv_post_recv(3)). Some providers refuse it, others put the request where nobody "
        "reads it.";
    finding.advice = "Post them with ibv_post_srq_recv().";
    finding.objects = {qp.name(), qp.srq->name()};
    finding.related = {{"the QP was made here", qp.made_at, qp.made_by}};
    report(call, finding);
  }

  void tell_failed(const Call& call, const QueuePair& qp, const std::string& status,
                   const RelatedPlace& told) {
    Finding finding;
    finding.sentence =
        "A send request is posted to " + qp.name() +
        " more than a second after a completion has told the program that the QP has "
        "failed (" +
        status + "): it is flushed.";
    finding.why =
        "A QP in ERROR takes requests and does none of them (IBTA 10.3.1). Where the connection "
        "never fails nothing is seen; where it does, work is lost or retried for ever.";
    finding.advice =
        "At the first failed completion stop posting, take the flushed ones, and move the QP "
        "through "
        "RESET or make another one.";
    finding.objects = {qp.name()};
    finding.related = {told};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_post_in_error() { return std::make_unique<PostInError>(); }

}  // namespace rocemu::check
