// The transport's and the port's counters under the names that sysfs has for them, as fabric tools
// expect them: ports/N/counters (IBTA PortCounters; data in 4-byte words) and ports/N/hw_counters
// (names of the Linux drivers).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dpdk_io/port/port.h"
#include "emulator/transport/interface/counters.h"

namespace rocemu::daemon {

using NamedCounters = std::vector<std::pair<std::string_view, uint64_t>>;

NamedCounters port_counters(const transport::Counters& counters, const dpdk_io::PortStats& port);
NamedCounters hw_counters(const transport::Counters& counters);

}  // namespace rocemu::daemon
