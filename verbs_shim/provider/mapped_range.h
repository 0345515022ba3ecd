// Whether a program has memory where it says so, as a device finds out that pins pages when they
// are registered. Looks at the mappings and touches no page, so that the cost does not grow with
// the range.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rocemu::provider {

// 0 when all of [address, address + bytes) is mapped and readable, and writable if `for_writing`;
// EFAULT when it is not, EINVAL when the range wraps round.
int check_mapped(uintptr_t address, size_t bytes, bool for_writing);

}  // namespace rocemu::provider
