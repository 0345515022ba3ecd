// Limit profiles are sets of device limits, with names, that users know from devices they have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

std::vector<std::string> limit_profile_names();
// Returns nothing when there is no profile of that name.
std::optional<device::DeviceLimits> limit_profile(const std::string& name);
// Returns the smaller one of each limit.
device::DeviceLimits smaller_limits(const device::DeviceLimits& one,
                                    const device::DeviceLimits& other);

}  // namespace rocemu::daemon
