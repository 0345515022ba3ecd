// Describes listeners and connections for `rocemu status --json`. To be called on the control
// thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "emulator/cm/rdma_cm.h"

namespace rocemu::daemon {

nlohmann::ordered_json describe(const cm::RdmaCm& cm);

}  // namespace rocemu::daemon
