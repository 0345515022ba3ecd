// A device's port as programs and peers see it while faults are about it: down, without an address,
// with another one. Without such faults it is as it really is.
#pragma once

#include "emulator/daemon/faults/armed_faults.h"
#include "emulator/device/attributes/device_config.h"

namespace rocemu::daemon {

device::PortConfig with_faults(const ArmedFaults& faults, uint32_t device, device::PortConfig port);

}  // namespace rocemu::daemon
