// The NIC's answers to those who look at it as a whole: what each part tells of itself, put
// together.
#pragma once

#include <functional>
#include <string>

#include "emulator/daemon/nic.h"

namespace rocemu::daemon {

// Report makes a JSON text, on the control thread, of what was taken down on the engine thread.
using Report = std::function<std::string()>;

// Both are called on the engine thread. `nic` outlives the report.
Report take_status(const Nic& nic);
Report take_links(const Nic& nic);

}  // namespace rocemu::daemon
