#pragma once

#include <span>
#include <string>

#include "tests/e2e/verbs/ends.h"

namespace rocemu::e2e {

// The first word of a fault: where.
inline std::string device_of(const Device& device) { return device.name(); }

std::span<const Row> queue_fault_rows();
std::span<const Row> port_fault_rows();
std::span<const Row> call_fault_rows();

}  // namespace rocemu::e2e
