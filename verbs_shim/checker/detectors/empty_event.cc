// empty-event: a program takes an event for a completion. It reads an event of a CQ, polls, finds
// nothing and gives up: ends with an error, with work outstanding, and with no other verb called
// after that poll. An event may tell of a completion that an earlier poll has taken already.
//
// The poll is taken for the reason only where everything speaks for it: the thread that ends the
// program is the one that has polled, alone ever, it found nothing behind an event for the first
// time, and less than a tenth of a second has passed.
#include <time.h>

#include "verbs_shim/checker/detectors/makers.h"

namespace rocemu::check {
namespace {

constexpr int64_t kAtOnce_ns = 100'000'000;

int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

struct EventNote : Note {
  std::atomic<pid_t> taken_by = 0;  // thread that took an event and has not polled; 0 for none
  std::atomic<PlaceId> taken_at = kNoPlace;
  std::atomic<uint32_t> empty = 0;  // events behind which nothing was found
};

// The last poll that found nothing behind an event.
struct EmptyPoll {
  std::weak_ptr<Object> cq;
  std::string verb;
  PlaceId polled_at = kNoPlace;
  PlaceId taken_at = kNoPlace;
  pid_t thread = 0;
  uint64_t cq_steps = 0;
  int64_t time_ns = 0;
};

class EmptyEvent : public Detector {
 public:
  EmptyEvent() : Detector("empty-event", kNextPolls) {}

  void on_cq_event_taken(const Call& call, CompletionQueue& cq) override {
    auto& events = note<EventNote>(cq);
    events.taken_at = call.place();
    events.taken_by = call.thread();
  }

  void on_next_poll(const Call& call, CompletionQueue& cq, int count) override {
    auto& events = note<EventNote>(cq);
    const bool is_own = events.taken_by.exchange(0) == call.thread();
    if (count > 0 || !is_own || events.empty.fetch_add(1) > 0) return;
    std::lock_guard lock(lock_);
    last_ = {model().find(ROCEMU_CHECK_CQ, cq.handle),
             call.verb(),
             call.place(),
             events.taken_at,
             call.thread(),
             cq.steps,
             now_ns()};
  }

  void on_exiting(int status) override {
    EmptyPoll last;
    {
      std::lock_guard lock(lock_);
      last = last_;
    }
    const auto object = last.cq.lock();
    if (status == 0 || object == nullptr || object->gone || last.thread != this_thread()) return;
    auto& cq = static_cast<CompletionQueue&>(*object);
    if (cq.poller != last.thread || cq.steps != last.cq_steps) return;
    if (now_ns() - last.time_ns > kAtOnce_ns || !has_work(cq)) return;
    if (is_new(last.polled_at)) tell(status, cq, last);
  }

 private:
  // True when a request is outstanding that completes to this CQ.
  bool has_work(const CompletionQueue& cq) const {
    const auto has = [](WorkQueue& queue) {
      std::lock_guard lock(queue.lock);
      return queue.is_tracked && !queue.empty();
    };
    for (const auto& object : model().all()) {
      if (object->kind != ROCEMU_CHECK_QP) continue;
      auto& qp = static_cast<QueuePair&>(*object);
      if (qp.send_cq.get() == &cq && has(qp.sends)) return true;
      if (qp.recv_cq.get() == &cq && qp.srq == nullptr && has(qp.receives)) return true;
    }
    return false;
  }

  void tell(int status, const CompletionQueue& cq, const EmptyPoll& last) {
    Finding finding;
    finding.sentence =
        "The program ends with status " + std::to_string(status) +
        " and work outstanding, at once after a poll of " + cq.name() +
        " that found nothing behind an event: an event is no promise of a completion.";
    finding.why =
        "Between ibv_req_notify_cq and the poll behind it a completion may come: it brings an "
        "event, "
        "and the poll takes it, so the event is found later and nothing with it "
        "(ibv_get_cq_event(3)). On a NIC that is slow, or fast, at the right moment that never "
        "happens.";
    finding.advice =
        "Take an empty poll behind an event for what it is: acknowledge the event, and wait for "
        "the "
        "next one.";
    finding.objects = {cq.name()};
    finding.related = {{"the event was read here", last.taken_at, last.thread},
                       {"the CQ was made here", cq.made_at, cq.made_by}};
    report(last.polled_at, last.verb.c_str(), last.thread, finding);
  }

  std::mutex lock_;
  EmptyPoll last_;
};

}  // namespace

std::unique_ptr<Detector> make_empty_event() { return std::make_unique<EmptyEvent>(); }

}  // namespace rocemu::check
