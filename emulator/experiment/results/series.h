// Values that change with time, looked at every interval: queues, pauses and rates.
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
// The progress of a flow in the interval before.
struct RateSample {
  TimeNs at_ns;
  uint32_t flow;
  uint64_t moved_bytes;
  std::optional<uint64_t> allowed_bits_per_s;  // by congestion control, at this moment
};
// The pauses of a port in the interval before.
struct PauseSample {
  TimeNs at_ns;
  uint32_t port;  // the port that sent the pauses, or was paused
  uint64_t pauses_sent;
  TimeNs paused_ns;
};

struct Series {
  std::vector<QueueSample> queues;
  std::vector<RateSample> rates;
  std::vector<PauseSample> pauses;
};

}  // namespace rocemu::experiment
