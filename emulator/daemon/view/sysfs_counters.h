// The transport's and the port's counters under the names that sysfs has for them, as fabric tools
// expect them: ports/N/counters (IBTA PortCounters; data in 4-byte words) and ports/N/hw_counters
// (names of the Linux drivers). docs/counters.md says what each means.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dpdk_io/port/port.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::daemon {

using NamedCounters = std::vector<std::pair<std::string_view, uint64_t>>;

// PortCounts are what a port's counters are made from.
struct PortCounts {
  transport::Counters transport;
  dpdk_io::PortStats port;
  uint64_t link_downs = 0;  // how often the port went from up to down
};

// Two reads of sysfs within so long may return the same values.
inline constexpr uint64_t kCounterLifespanMs = 1000;

NamedCounters port_counters(const PortCounts& counts);
NamedCounters hw_counters(const transport::Counters& counters);

}  // namespace rocemu::daemon
