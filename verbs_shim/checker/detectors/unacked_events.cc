// unacked-events: an object is destroyed while events about it were read and not acknowledged,
// which waits for ever (ibv_get_cq_event(3), ibv_get_async_event(3)). Another thread may be about
// to acknowledge them, so it gets a second.
#include <time.h>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

constexpr time_t kPatience_s = 1;

struct Taken : Note {
  std::atomic<uint32_t> async_events = 0;
  std::atomic<PlaceId> last_place = kNoPlace;
  std::atomic<pid_t> last_thread = 0;
};

// Waits until `count` is `wanted`, for a second. Returns how many are missing then.
uint32_t missing_after_wait(pthread_mutex_t& mutex, pthread_cond_t& changed, const uint32_t& count,
                            uint32_t wanted) {
  timespec until = {};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += kPatience_s;
  pthread_mutex_lock(&mutex);
  int error = 0;
  while (static_cast<int32_t>(wanted - count) > 0 && error == 0) {
    error = pthread_cond_timedwait(&changed, &mutex, &until);
  }
  const auto missing = static_cast<int32_t>(wanted - count);
  pthread_mutex_unlock(&mutex);
  return missing > 0 ? static_cast<uint32_t>(missing) : 0;
}

class UnackedEvents : public Detector {
 public:
  UnackedEvents() : Detector("unacked-events", kNothing) {}

  void on_cq_event_taken(const Call& call, CompletionQueue& cq) override { remember(call, cq); }

  void on_async_event_taken(const Call& call, Context&, const ibv_async_event& event) override {
    const std::shared_ptr<Object> object = subject(event);
    if (object == nullptr) return;
    ++note<Taken>(*object).async_events;
    remember(call, *object);
  }

  void on_going(const Call& call, Object& object) override {
    uint32_t missing = 0;
    const uint32_t async_events = taken_of(object);
    if (object.kind == ROCEMU_CHECK_CQ) {
      auto& queue = static_cast<CompletionQueue&>(object);
      ibv_cq& cq = *queue.cq();
      missing = missing_after_wait(cq.mutex, cq.cond, cq.comp_events_completed, queue.events_taken);
      if (missing == 0 && async_events > 0) {
        missing = missing_after_wait(cq.mutex, cq.cond, cq.async_events_completed, async_events);
      }
    } else if (object.kind == ROCEMU_CHECK_QP && async_events > 0) {
      ibv_qp& qp = *static_cast<QueuePair&>(object).qp();
      missing = missing_after_wait(qp.mutex, qp.cond, qp.events_completed, async_events);
    } else if (object.kind == ROCEMU_CHECK_SRQ && async_events > 0) {
      ibv_srq& srq = *static_cast<SharedReceiveQueue&>(object).srq();
      missing = missing_after_wait(srq.mutex, srq.cond, srq.events_completed, async_events);
    }
    if (missing > 0 && is_new(call)) tell(call, object, missing);
  }

 private:
  std::shared_ptr<Object> subject(const ibv_async_event& event) const {
    switch (event.event_type) {
      case IBV_EVENT_CQ_ERR:
        return model().find(ROCEMU_CHECK_CQ, event.element.cq);
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_COMM_EST:
      case IBV_EVENT_SQ_DRAINED:
      case IBV_EVENT_PATH_MIG:
      case IBV_EVENT_PATH_MIG_ERR:
      case IBV_EVENT_QP_LAST_WQE_REACHED:
        return model().find(ROCEMU_CHECK_QP, event.element.qp);
      case IBV_EVENT_SRQ_ERR:
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        return model().find(ROCEMU_CHECK_SRQ, event.element.srq);
      default:
        return nullptr;
    }
  }

  void remember(const Call& call, Object& object) {
    auto& taken = note<Taken>(object);
    taken.last_place = call.place();
    taken.last_thread = call.thread();
  }

  uint32_t taken_of(Object& object) {
    const Taken* taken = noted<Taken>(object);
    return taken == nullptr ? 0 : taken->async_events.load();
  }

  void tell(const Call& call, Object& object, uint32_t missing) {
    const auto& taken = note<Taken>(object);
    Finding finding;
    finding.sentence = std::string(call.verb()) + " waits for " +
                       count_of(missing, "event", "events") + " of " + object.name() +
                       " that the program has read and not acknowledged: it may wait for ever.";
    finding.why =
        "\"All events must be acknowledged before an object is destroyed\" (ibv_get_cq_event(3), "
        "ibv_get_async_event(3)). No event at all, or one that is never read, hangs nothing: it "
        "depends on when the NIC raises it.";
    finding.advice =
        "Call ibv_ack_cq_events or ibv_ack_async_event for each event that was read; never with a "
        "lock held that the thread needs which polls or destroys.";
    finding.objects = {object.name()};
    finding.related = {{"the last event was read here", taken.last_place, taken.last_thread},
                       {"the object was made here", object.made_at, object.made_by}};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_unacked_events() { return std::make_unique<UnackedEvents>(); }

}  // namespace rocemu::check
