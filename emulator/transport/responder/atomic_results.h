// The results of the newest atomics, for the case that the requester asks again: an atomic is never
// executed twice (IBTA vol 1, 9.7.5.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "emulator/transport/qp/ring_buffer.h"
#include "emulator/wire/types.h"

namespace rocemu::transport {

class AtomicResults {
 public:
  void release() { results_.release(); }
  size_t size() const { return results_.size(); }

  // Keeps at most `max` results, the oldest go. Precondition: max > 0.
  void keep(wire::Psn psn, uint64_t original, size_t max) {
    if (results_.size() >= max) results_.pop_front();
    results_.push_back() = {psn, original};
  }

  // The value that the newest atomic with `psn` found; empty when it is no longer kept.
  std::optional<uint64_t> find(wire::Psn psn) const {
    for (size_t i = results_.size(); i-- > 0;)
      if (results_[i].psn == psn) return results_[i].original;
    return std::nullopt;
  }

 private:
  struct Result {
    wire::Psn psn;
    uint64_t original = 0;
  };
  RingBuffer<Result> results_;  // oldest first
};

}  // namespace rocemu::transport
