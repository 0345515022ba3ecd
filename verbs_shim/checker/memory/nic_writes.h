// Writes to a program's bytes that are not the program's: by the NIC, because the program asked for
// it (receives, READs, atomics), or by a peer. A peer may write to memory of which any part is in a
// region that was registered with IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC or
// IBV_ACCESS_MW_BIND; the NIC knows whether one ever has (suspects.h).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "verbs_shim/checker/memory/spans.h"
#include "verbs_shim/checker/model/model.h"

namespace rocemu::check {

// Thread-safe; its lock is a leaf.
class NicWrites {
 public:
  // Now, as a number to ask with later.
  uint64_t now() const;
  // The NIC was asked to write here, and has, or may have.
  void add(std::span<const Span> spans);
  // May it have, since `since`? Also when that is too long ago to be known.
  bool may_meet(std::span<const Span> spans, uint64_t since) const;

 private:
  static constexpr uint64_t kRemembered = 1024;

  mutable std::mutex lock_;
  std::array<Span, kRemembered> writes_;
  uint64_t count_ = 0;
};

// True when the bytes are in a region, of all that there are, to which peers may write; slow.
bool may_be_written_by_peers(const Model& model, std::span<const Span> spans);

// True when a posted receive, READ or atomic other than `but` waits for some of these bytes, or
// when another thread holds the lock of a queue; slow. `locked` is the queue whose lock the caller
// holds.
bool may_be_awaited(const Model& model, std::span<const Span> spans, WorkQueue* locked,
                    const Request* but);

}  // namespace rocemu::check
