// The counters of a device as a trace has them: samples, of what has changed alone. They are those
// that tell whether something moves and what goes wrong; their names are those of sysfs
// (docs/counters.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "emulator/trace/format/record.h"
#include "emulator/trace/record/device_recorder.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::daemon {

inline constexpr size_t kSampledCounters = 12;

// The records of their names.
std::vector<trace::Record> counter_names();

// Belongs to the thread that has the device's turn.
class CounterSamples {
 public:
  // What has been counted before anybody looked.
  void begin(TimeNs now, const transport::Counters& counters);
  // A record of each counter that has another value than in the sample before. The first one of a
  // counter follows a record of what it was until then, so that a graph of it has a beginning.
  void sample(TimeNs now, const transport::Counters& counters, trace::DeviceRecorder& recorder);

 private:
  struct Counter {
    uint64_t value = 0;
    bool is_told = false;
  };

  TimeNs last_ns_ = 0;
  std::array<Counter, kSampledCounters> counters_{};
};

}  // namespace rocemu::daemon
