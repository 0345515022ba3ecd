// Datagrams of the control target: a request that makes sense more often than not, and then the
// damage that the input asks for.
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/device/attributes/device_config.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/control/model.h"

namespace rocemu::fuzz {

// The request that takes a connection one step further to two QPs that exchange messages.
std::vector<std::byte> next_datagram(const device::HcaConfig& config, const Model& model);

std::vector<std::byte> draw_datagram(ByteSource& input, const device::HcaConfig& config,
                                     const Model& model);

}  // namespace rocemu::fuzz
