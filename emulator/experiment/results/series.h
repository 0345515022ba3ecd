// What changed with time, looked at every interval: queues, pauses and rates.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace rocemu::experiment {

// A value that is other than at the last look.
struct QueueSample {
  TimeNs at_ns;
  uint32_t port;
  uint64_t bytes;
};
struct RateSample {  // of the interval before
  TimeNs at_ns;
  uint32_t flow;
  uint64_t moved_bytes;
  std::optional<uint64_t> allowed_bits_per_s;  // by congestion control, at this moment
};
struct PauseSample {  // of the interval before
  TimeNs at_ns;
  uint32_t port;  // that sent the pauses, or was paused
  uint64_t pauses_sent;
  TimeNs paused_ns;
};

struct Series {
  std::vector<QueueSample> queues;
  std::vector<RateSample> rates;
  std::vector<PauseSample> pauses;
};

}  // namespace rocemu::experiment
