// The device's and its port's descriptions of themselves for a program that asks
// (ibv_query_device(3), ibv_query_port(3)).
#pragma once

#include <cstdint>

#include "emulator/device/attributes/device_config.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/abi/memory.h"

namespace rocemu::daemon {

// The header is left to the caller.
rocemu_device_attr describe_device(const device::HcaConfig& config);
rocemu_device_attr_ex describe_device_ex(const device::HcaConfig& config);
rocemu_port_attr describe_port(const device::PortConfig& port, const device::DeviceLimits& limits);

// enum ibv_mtu for a size in bytes: the largest that is not above it.
uint32_t ibv_mtu(uint32_t mtu_bytes);

}  // namespace rocemu::daemon
