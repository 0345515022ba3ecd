// lost-wakeup: a thread asks for an event and waits for it without a poll in between, while a
// completion stood in the CQ already when it asked. An event comes for the next completion alone
// (ibv_req_notify_cq(3)), so nothing wakes it for that one, unless another comes after it.
//
// Where several threads poll a CQ one may poll for another, and nothing is concluded.
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

struct Arming {
  bool is_late = false;  // completions stood there already
  pid_t thread = 0;
  PlaceId place = kNoPlace;
  uint64_t cq_steps = 0;
};

struct ArmedNote : Note {
  std::mutex lock;
  Arming arming;
  uint32_t arms = 0;  // each gives one event at most
};

struct ChannelNote : Note {
  std::mutex lock;
  std::vector<std::weak_ptr<Object>> cqs;
};

class LostWakeup : public Detector {
 public:
  LostWakeup() : Detector("lost-wakeup", kArms) {}

  void on_made(const Call&, Object& object) override {
    if (object.kind != ROCEMU_CHECK_CQ) return;
    auto& cq = static_cast<CompletionQueue&>(object);
    if (cq.channel == nullptr) return;
    auto& users = note<ChannelNote>(*cq.channel);
    std::lock_guard lock(users.lock);
    std::erase_if(users.cqs, [](const auto& user) { return user.expired(); });
    users.cqs.push_back(model().find(ROCEMU_CHECK_CQ, cq.handle));
  }

  void on_armed(const Call& call, CompletionQueue& cq, bool solicited_only) override {
    auto& armed = note<ArmedNote>(cq);
    std::lock_guard lock(armed.lock);
    // A thread that asks for solicited events alone may leave other completions in the CQ.
    const bool is_late = cq.had_completions_when_armed && !solicited_only;
    ++armed.arms;
    armed.arming = {is_late, call.thread(), call.place(), cq.steps};
  }

  void on_waiting(const Call& call, Channel& channel) override {
    std::vector<std::shared_ptr<Object>> cqs;
    {
      auto& users = note<ChannelNote>(channel);
      std::lock_guard lock(users.lock);
      for (const auto& user : users.cqs) {
        if (auto cq = user.lock(); cq != nullptr && !cq->gone) cqs.push_back(std::move(cq));
      }
    }
    for (const auto& object : cqs) look(call, static_cast<CompletionQueue&>(*object));
  }

  // An event that an earlier request brought may have been there all the time; it wasn't when there
  // were as many events as requests.
  void on_cq_event_taken(const Call& call, CompletionQueue& cq) override {
    bool is_of_last_arm = false;
    {
      auto& armed = note<ArmedNote>(cq);
      std::lock_guard lock(armed.lock);
      is_of_last_arm = armed.arms == cq.events_taken;
    }
    if (is_of_last_arm) look(call, cq);
  }

 private:
  void look(const Call& call, CompletionQueue& cq) {
    Arming arming;
    {
      auto& armed = note<ArmedNote>(cq);
      std::lock_guard lock(armed.lock);
      arming = armed.arming;
    }
    const bool is_own = arming.thread == call.thread() && cq.poller == call.thread();
    if (!arming.is_late || !is_own || arming.cq_steps != cq.steps) return;
    if (is_new(call)) tell(call, cq, arming);
  }

  void tell(const Call& call, const CompletionQueue& cq, const Arming& arming) {
    Finding finding;
    finding.sentence = "The thread waits for an event of " + cq.name() +
                       ", which it has asked for and not polled since, while a completion stood in "
                       "it before it asked: no event comes for that one.";
    finding.why =
        "\"The notification occurs for the next completion\" (ibv_req_notify_cq(3)): what came "
        "between the last poll and the request is found by a poll after the request alone. On a "
        "NIC "
        "that is fast, or slow, in the right moment nothing comes between.";
    finding.advice = "After ibv_req_notify_cq poll until the CQ is empty, and only then wait.";
    finding.objects = {cq.name()};
    finding.related = {{"the event was asked for here", arming.place, arming.thread},
                       {"the CQ was made here", cq.made_at, cq.made_by}};
    report(call, finding);
  }
};

}  // namespace

std::unique_ptr<Detector> make_lost_wakeup() { return std::make_unique<LostWakeup>(); }

}  // namespace rocemu::check
