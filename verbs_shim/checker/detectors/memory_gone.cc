// memory-gone: memory is unmapped or freed, or its region deregistered, while a request names it.
//
// Requests of QPs in ERROR are not counted: the NIC only flushes them, and programs that end a
// connection commonly give their buffers back then. Nor are those of SRQs without a QP at work, and
// datagrams that may have been answered.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "verbs_shim/checker/detectors/makers.h"
#include "verbs_shim/checker/memory/spans.h"
#include "verbs_shim/checker/memory/watched_memory.h"
#include "verbs_shim/checker/model/text.h"

namespace rocemu::check {
namespace {

struct Watched : Note {
  std::mutex lock;
  std::optional<Span> span;
};

// A request that was found, with what is said of it.
struct Victim {
  std::string queue;  // by name
  std::string what;   // "RDMA_WRITE", "receive"
  uint64_t wr_id = 0;
  PlaceId posted_at = kNoPlace;
  pid_t posted_by = 0;
};

using Wanted = std::function<bool(const Context&, Request&)>;

std::optional<Victim> find_in(const Object& owner, WorkQueue& queue, const Wanted& wanted) {
  std::lock_guard lock(queue.lock);
  if (!queue.is_tracked) return std::nullopt;
  for (size_t i = 0; i < queue.size(); ++i) {
    Request& request = queue.at(i);
    if (request.is_inline || request.is_retired || !wanted(*owner.context, request)) continue;
    return Victim{owner.name(), request.is_send ? name_of(request.opcode) : "receive",
                  request.wr_id, request.posted_at, request.posted_by};
  }
  return std::nullopt;
}

bool is_at_work(const QueuePair& qp) {
  const ibv_qp_state state = qp.state;
  return !qp.gone && state != IBV_QPS_ERR && state != IBV_QPS_RESET;
}

class MemoryGone : public Detector {
 public:
  MemoryGone() : Detector("memory-gone", kNothing) {}

  void on_made(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_MR) watch(static_cast<MemoryRegion&>(object));
  }
  void on_region_changed(const Call&, MemoryRegion& region) override { watch(region); }
  void on_gone(const Call&, Object& object) override {
    if (object.kind == ROCEMU_CHECK_MR) unwatch(static_cast<MemoryRegion&>(object));
  }

  void on_going(const Call& call, Object& object) override {
    if (object.kind != ROCEMU_CHECK_MR) return;
    const auto& region = static_cast<const MemoryRegion&>(object);
    const auto victim = find([&region](const Context& context, Request& request) {
      return &context == region.context &&
             std::any_of(request.sges.begin(), request.sges.end(),
                         [&region](const ibv_sge& sge) { return sge.lkey == region.lkey; });
    });
    if (!victim || !is_new(call)) return;
    Finding finding = about(*victim);
    finding.sentence = region.name() + " is deregistered while a " + victim->what + " on " +
                       victim->queue + " with wr_id " + hex(victim->wr_id) + " names it.";
    finding.objects.push_back(region.name());
    finding.related.push_back({"the region was registered here", region.made_at, region.made_by});
    report(call, finding);
  }

  void on_memory_going(const Call& call, const void* address, size_t bytes,
                       const char* how) override {
    const Span going = {reinterpret_cast<uintptr_t>(address), bytes};
    const auto victim = find([&going](const Context& context, Request& request) {
      const std::vector<Span>* const spans = find_spans(context, request);
      return spans != nullptr && std::any_of(spans->begin(), spans->end(),
                                             [&](const Span& span) { return span.meets(going); });
    });
    if (!victim || !is_new(call)) return;
    Finding finding = about(*victim);
    finding.sentence = std::string(how) + "() of " + count_of(bytes, "byte", "bytes") + " at " +
                       hex(going.from) + " takes away memory that a " + victim->what + " on " +
                       victim->queue + " with wr_id " + hex(victim->wr_id) + " names.";
    report(call, finding);
  }

 private:
  void watch(MemoryRegion& region) {
    Watched& watched = note<Watched>(region);
    std::lock_guard lock(watched.lock);
    if (watched.span) unwatch_memory(*watched.span);
    watched.span = span_of(region);
    watch_memory(*watched.span);
  }

  void unwatch(MemoryRegion& region) {
    Watched& watched = note<Watched>(region);
    std::lock_guard lock(watched.lock);
    if (watched.span) unwatch_memory(*watched.span);
    watched.span.reset();
  }

  std::optional<Victim> find(const Wanted& wanted) const {
    const std::vector<std::shared_ptr<Object>> objects = model().all();
    std::set<const Object*> srqs_at_work;
    for (const std::shared_ptr<Object>& object : objects) {
      if (object->kind != ROCEMU_CHECK_QP) continue;
      const auto& qp = static_cast<const QueuePair&>(*object);
      if (is_at_work(qp)) srqs_at_work.insert(qp.srq.get());
    }
    for (const std::shared_ptr<Object>& object : objects) {
      std::optional<Victim> victim;
      if (object->kind == ROCEMU_CHECK_QP) {
        auto& qp = static_cast<QueuePair&>(*object);
        if (!is_at_work(qp)) continue;
        victim = find_in(qp, qp.sends, [&](const Context& context, Request& request) {
          return !qp.may_be_answered(request) && wanted(context, request);
        });
        if (!victim) victim = find_in(qp, qp.receives, wanted);
      } else if (srqs_at_work.contains(object.get())) {
        victim = find_in(*object, static_cast<SharedReceiveQueue&>(*object).receives, wanted);
      }
      if (victim) return victim;
    }
    return std::nullopt;
  }

  static Finding about(const Victim& victim) {
    Finding finding;
    finding.why =
        "A posted request's memory belongs to the NIC until its completion was polled, and its "
        "region "
        "has to be there for as long (ibv_post_send(3), ibv_post_recv(3), ibv_dereg_mr(3)). A NIC "
        "has "
        "pinned the pages: it goes on reading and writing them when the program has other ones at "
        "that address, or others have them; or the request fails, when it gets to the key in time.";
    finding.advice =
        "Poll the completions first. To be rid of requests that wait, move the QP to ERROR with "
        "ibv_modify_qp() and poll until all have come back flushed, or destroy the QP.";
    finding.objects = {victim.queue};
    finding.related = {{"the request was posted here", victim.posted_at, victim.posted_by}};
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> make_memory_gone() { return std::make_unique<MemoryGone>(); }

}  // namespace rocemu::check
