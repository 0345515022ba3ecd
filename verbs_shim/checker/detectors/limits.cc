// limits: requests with more elements or more inline data than the QP was granted, and what no
// device grants: an object that was refused for its size, by a program that never got one of the
// kind. A program that asks for less after a refusal was only finding out.
#include <array>

#include "verbs_shim/checker/detectors/common_devices.h"
#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

uint64_t bytes_of(const ibv_send_wr& wr) {
  uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return bytes;
}

// A negative number is the program's, too.
std::string elements_of(int count) {
  return std::to_string(count) + (count == 1 ? " element" : " elements");
}

// Excess says what was asked for that is more than the device grants, as "max_send_wr 100000, of
// which the device grants 32768", and what others grant; empty when it is not more.
struct Excess {
  std::string text;
  const char* elsewhere = nullptr;
};

Excess over(const char* what, uint64_t asked, int64_t most, const char* elsewhere) {
  if (most <= 0 || asked <= static_cast<uint64_t>(most)) return {};
  return {std::string(what) + " " + std::to_string(asked) + ", of which the device grants " +
              std::to_string(most),
          elsewhere};
}

// The first capability that a QP was refused for.
Excess excess(const ibv_qp_cap& cap, const Context& context) {
  using namespace common_devices;
  const ibv_device_attr& limits = context.limits;
  for (const Excess& found :
       {over("max_send_wr", cap.max_send_wr, limits.max_qp_wr, kQueueRequests),
        over("max_recv_wr", cap.max_recv_wr, limits.max_qp_wr, kQueueRequests),
        over("max_send_sge", cap.max_send_sge, limits.max_sge, kElements),
        over("max_recv_sge", cap.max_recv_sge, limits.max_sge, kElements),
        over("max_inline_data", cap.max_inline_data, context.max_inline_data, kInlineBytes)}) {
    if (!found.text.empty()) return found;
  }
  return {};
}

// The first refusal of each kind, in a device of which nothing of that kind was ever had.
struct Refusals : Note {
  struct Entry {
    bool had_one = false;
    std::string sentence;
    const char* elsewhere = nullptr;
    PlaceId place = kNoPlace;
    pid_t thread = 0;
    const char* verb = nullptr;
  };
  std::mutex lock;
  std::array<Entry, ROCEMU_CHECK_KINDS> entries;
};

class Limits : public Detector {
 public:
  Limits() : Detector("limits", kSends | kReceives) {}

  void on_sends_posted(const Call& call, QueuePair& qp, const ibv_send_wr*, int error,
                       const ibv_send_wr* bad) override {
    if (error == 0 || bad == nullptr) return;
    if (bad->num_sge < 0 || static_cast<uint32_t>(bad->num_sge) > qp.granted.max_send_sge) {
      tell_request(call, qp, bad->wr_id, elements_of(bad->num_sge), "max_send_sge",
                   qp.granted.max_send_sge, qp.asked.max_send_sge);
    } else if ((bad->send_flags & IBV_SEND_INLINE) != 0 && bad->sg_list != nullptr &&
               bytes_of(*bad) > qp.granted.max_inline_data) {
      tell_request(call, qp, bad->wr_id, count_of(bytes_of(*bad), "byte inline", "bytes inline"),
                   "max_inline_data", qp.granted.max_inline_data, qp.asked.max_inline_data);
    }
  }

  void on_receives_posted(const Call& call, QueuePair* qp, SharedReceiveQueue*, const ibv_recv_wr*,
                          int error, const ibv_recv_wr* bad) override {
    if (error == 0 || bad == nullptr || qp == nullptr || qp->srq != nullptr) return;
    if (bad->num_sge >= 0 && static_cast<uint32_t>(bad->num_sge) <= qp->granted.max_recv_sge)
      return;
    tell_request(call, *qp, bad->wr_id, elements_of(bad->num_sge), "max_recv_sge",
                 qp->granted.max_recv_sge, qp->asked.max_recv_sge);
  }

  void on_made(const Call&, Object& object) override {
    if (object.context == nullptr) return;
    auto& refusals = note<Refusals>(*object.context);
    std::lock_guard lock(refusals.lock);
    refusals.entries[object.kind].had_one = true;
  }

  void on_refused(const Call& call, const Refusal& refusal) override {
    const Excess found = excess_of(refusal);
    if (found.text.empty()) return;
    auto& refusals = note<Refusals>(*refusal.context);
    std::lock_guard lock(refusals.lock);
    Refusals::Entry& entry = refusals.entries[refusal.kind];
    if (entry.had_one || !entry.sentence.empty()) return;
    entry = {false,
             "No " + std::string(name_of(refusal.kind)) + " was had of " + refusal.context->name() +
                 ": it was asked for with " + found.text + ".",
             found.elsewhere,
             call.place(),
             call.thread(),
             call.verb()};
  }

  void on_gone(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_CONTEXT) tell_refusals(object);
  }

  void on_end(const Model& model) override {
    for (const auto& object : model.all()) {
      if (object->kind == ROCEMU_CHECK_CONTEXT) tell_refusals(*object);
    }
  }

 private:
  static Excess excess_of(const Refusal& refusal) {
    const ibv_device_attr& limits = refusal.context->limits;
    if (refusal.kind == ROCEMU_CHECK_QP && refusal.asked != nullptr)
      return excess(static_cast<const ibv_qp_init_attr_ex*>(refusal.asked)->cap, *refusal.context);
    if (refusal.kind == ROCEMU_CHECK_CQ)
      return over("a cqe of", refusal.value, limits.max_cqe, common_devices::kCqEntries);
    if (refusal.kind == ROCEMU_CHECK_SRQ)
      return over("a max_wr of", refusal.value, limits.max_srq_wr, common_devices::kSrqRequests);
    return {};
  }

  void tell_request(const Call& call, const QueuePair& qp, uint64_t wr_id, const std::string& has,
                    const char* limit, uint32_t granted, uint32_t asked) {
    if (!is_new(call)) return;
    Finding finding;
    finding.sentence = "The request with wr_id " + hex(wr_id) + " has " + has + ", and " +
                       qp.name() + " was granted a " + limit + " of " + std::to_string(granted) +
                       " (" + std::to_string(asked) + " was asked for).";
    finding.why =
        "A device grants at least what was asked for, and many grant more: mlx5 rounds up, rxe and "
        "bnxt hardly do. What is over one's own request works on some (ibv_create_qp(3)).";
    finding.advice = std::string("Ask for what is used, and keep to the ") + limit +
                     " that ibv_create_qp returns.";
    finding.objects = {qp.name()};
    finding.related = {{"the QP was made here", qp.made_at, qp.made_by}};
    report(call, finding);
  }

  void tell_refusals(Object& context) {
    auto& refusals = note<Refusals>(context);
    std::lock_guard lock(refusals.lock);
    for (const Refusals::Entry& entry : refusals.entries) {
      if (entry.had_one || entry.sentence.empty() || !is_new(entry.place)) continue;
      Finding finding;
      finding.sentence = entry.sentence;
      finding.why = std::string("What devices grant differs by an order of magnitude: ") +
                    entry.elsewhere + ".";
      finding.advice =
          "Take the smaller of one's wish and the limit of ibv_query_device(3); of inline data, "
          "which that does not tell, ask for less when it is refused.";
      finding.objects = {context.name()};
      report(entry.place, entry.verb, entry.thread, finding);
    }
  }
};

}  // namespace

std::unique_ptr<Detector> make_limits() { return std::make_unique<Limits>(); }

}  // namespace rocemu::check
