// The one EAL of the test process, started by the first test that needs it: listing the tests, as
// ctest does, starts none.
#pragma once

namespace rocemu::dpdk_io {

void need_eal();

}  // namespace rocemu::dpdk_io
