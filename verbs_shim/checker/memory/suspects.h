// Findings about bytes that a peer might have written: they wait until the NIC can be asked whether
// one ever has (ROCEMU_OP_WAS_WRITTEN in verbs_shim/abi/inspect.h).
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "verbs_shim/checker/memory/spans.h"
#include "verbs_shim/checker/model/model.h"
#include "verbs_shim/checker/report/finding.h"

namespace rocemu::check {

struct Suspect {
  Finding finding;
  PlaceId place = kNoPlace;  // where it is reported
  const char* verb = nullptr;
  pid_t thread = 0;
  std::vector<Span> spans;  // the bytes in question
};

// Thread-safe; its lock is a leaf.
class Suspects {
 public:
  // Forgets a suspect for which there is no room.
  void add(Suspect suspect);
  // Returns the suspects whose bytes no peer has written, and forgets the others. Asks the NIC:
  // nothing may be locked.
  std::vector<Suspect> settle(const Model& model);

 private:
  static constexpr size_t kMax = 64;

  std::atomic<bool> has_any_ = false;
  std::mutex lock_;
  std::vector<Suspect> suspects_;
};

}  // namespace rocemu::check
