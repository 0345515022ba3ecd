// Commands as librdmacm writes them to /dev/infiniband/rdma_cm, most of them sensible.
#pragma once

#include <cstdint>

#include "tests/fuzz/byte_source.h"
#include "verbs_shim/abi/cm.h"

namespace rocemu::fuzz {

// Host N has 10.77.0.N and fd52::N, for N of 1 and 2.
inline constexpr uint8_t kHosts = 2;

// About an object that may be there: ids, groups and channels are small numbers.
rocemu_cm_command draw_command(ByteSource& input);

}  // namespace rocemu::fuzz
