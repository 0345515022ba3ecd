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
  // Those for which there is no room are forgotten.
  void add(Suspect suspect);
  // Takes those out that no peer has had to do with, and forgets the others. Asks the NIC: nothing
  // may be locked.
  std::vector<Suspect> settle(const Model& model);

 private:
  static constexpr size_t kMost = 64;

  std::atomic<bool> has_any_ = false;
  std::mutex lock_;
  std::vector<Suspect> suspects_;
};

}  // namespace rocemu::check
