#pragma once

#include <span>

#include "tests/e2e/tools/lab.h"

namespace rocemu::e2e {

std::span<const Row> queue_fault_rows();
std::span<const Row> port_fault_rows();
std::span<const Row> call_fault_rows();

}  // namespace rocemu::e2e
