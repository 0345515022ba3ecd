#include "tests/unit/dpdk_io/shared_eal.h"

#include "dpdk_io/eal/eal.h"

namespace rocemu::dpdk_io {

void need_eal() { static const Eal eal{EalOptions{.memory_mb = 192}}; }

}  // namespace rocemu::dpdk_io
