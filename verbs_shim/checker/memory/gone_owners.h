// What the requests of destroyed QPs belonged to, as long as their completions may be in a CQ. A
// wr_id commonly is a pointer to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "verbs_shim/checker/model/objects.h"
#include "verbs_shim/checker/model/span.h"

namespace rocemu::check {

// Something that the program did: where, and in which thread.
struct Moment {
  PlaceId place = kNoPlace;
  pid_t thread = 0;
};

struct GoneOwner {
  std::shared_ptr<CompletionQueue> cq;
  std::string qp;  // by name
  uint64_t wr_id = 0;
  Moment posted;
  Moment destroyed;
  Moment freed;  // kNoPlace: not yet
};

// Thread-safe; its lock is a leaf.
class GoneOwners {
 public:
  ~GoneOwners();

  // The owner's memory is watched from now on (watched_memory.h). Where the wr_id is no address
  // there is none, and where there is no more room the oldest is forgotten.
  void add(GoneOwner owner);
  void note_freed(const Span& memory, const Moment& when);
  // One whose memory was freed, which is forgotten; empty for none.
  std::optional<GoneOwner> take_freed(const CompletionQueue& cq);
  void forget(const CompletionQueue& cq);
  bool has(const CompletionQueue& cq);

 private:
  void forget(std::vector<GoneOwner>::iterator owner);

  std::mutex lock_;
  std::vector<GoneOwner> owners_;
};

}  // namespace rocemu::check
