// A round of verify_bytes: one QP pair with random attributes, and messages over it in both
// directions at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/e2e/bytes/flow.h"

namespace rocemu::e2e {

inline constexpr uint32_t kMaxSge = 16;

// Bench is what all rounds share: both devices, and for each direction an arena at either end.
struct Bench {
  Device devices[2];
  struct Direction {
    std::unique_ptr<Arena> requester, responder;
    std::unique_ptr<Regions> requester_regions, responder_regions;
  } directions[2];  // [0]: devices[0] requests

  // Throws when a byte outside of all messages has changed. No message may be in flight.
  void check_arenas() const;
};

Bench make_bench(Device a, Device b, uint32_t max_message_bytes, Random& random);

// Runs so many messages, shared out between the directions. Returns the bytes of payload verified;
// throws Failure.
uint64_t run_round(Bench& bench, const std::vector<const Operation*>& operations, uint64_t messages,
                   SizePlan& sizes, Random& random, bool verbose);

}  // namespace rocemu::e2e
