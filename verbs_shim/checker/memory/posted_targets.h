// The places that posted receives, READs and atomics wait for, and which of them overlap.
//
// Some programs mean to have several requests write to one place: benchmarks, whose data nobody
// reads, and programs that let the GRHs of all datagrams go to one scratch buffer. So a place that
// three requests wait for at once is a sink, now and later, and so is an element that is one of
// several. Two requests with exactly one place are a mistake only where the program tells its
// buffers apart by wr_id: it gave these two different ones, or, in this queue, always different
// ones to different places.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

struct Target {
  Span span;
  const WorkQueue* queue = nullptr;
  uint64_t index = 0;  // place of the request in its queue
  uint64_t wr_id = 0;
  PlaceId posted_at = kNoPlace;
  pid_t posted_by = 0;
  bool is_whole = false;  // the request has no other element
  bool is_send = false;
};

// Thread-safe; its lock is a leaf.
class PostedTargets {
 public:
  void add(const WorkQueue& queue, const Request& request, std::span<const Span> spans);
  void remove(const WorkQueue& queue, const Request& request, std::span<const Span> spans);
  // The same where the request's region is gone, and with it where it was; slow.
  void drop(const WorkQueue& queue, const Request& request);
  bool is_sink(std::span<const Span> spans) const;

  // Another request that waits for some of the first `written_bytes` of `spans`, where the one of
  // `queue` has just put its data, and was not meant to; empty where there is none.
  std::optional<Target> other(const WorkQueue& queue, const Request& request,
                              std::span<const Span> spans, size_t written_bytes) const;

  void forget(const WorkQueue& queue);

 private:
  // Shows whether a queue's requests have their wr_ids by place.
  struct Naming {
    bool has_last = false;
    uintptr_t last_place = 0;
    uint64_t last_wr_id = 0;
    bool differs = false;  // two places had different ones
    bool repeats = false;  // two places had the same
  };
  using Targets = std::multimap<uintptr_t, Target>;

  void note_name(const WorkQueue& queue, uintptr_t place, uint64_t wr_id);
  bool names_places(const WorkQueue& queue) const;
  bool is_mistake(const Target& own, const Target& other) const;

  mutable std::mutex lock_;
  Targets targets_;  // by the first byte
  size_t longest_bytes_ = 0;
  std::unordered_set<uintptr_t> sinks_;
  std::unordered_map<const WorkQueue*, Naming> naming_;
};

}  // namespace rocemu::check
