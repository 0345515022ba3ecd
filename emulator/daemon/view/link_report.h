// The links' impairments as `rocemu link show` prints them.
#pragma once

#include <span>
#include <string>

#include "emulator/daemon/attachment/links.h"

namespace rocemu::daemon {

// The JSON that verbs_shim/abi/control.h describes for ROCEMU_OP_LINK_SHOW. Link N is that of
// device N.
std::string links_to_json(std::span<const LinkPair> links,
                          std::span<const device::HcaConfig> devices);

}  // namespace rocemu::daemon
