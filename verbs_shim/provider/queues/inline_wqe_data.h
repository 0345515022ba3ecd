// A few bytes of payload that travel inline in the WQE, beside the scatter list's element that
// names them (ROCEMU_SEND_INLINE_WQE_DATA of verbs_shim/abi/rings.h).
#pragma once

#include <infiniband/verbs.h>

#include "verbs_shim/abi/rings.h"

namespace rocemu::provider {

// Adds the payload to an entry whose opcode and scatter list are set, where it is short and can be
// had. Memory that is not there is the NIC's to find out.
void add_inline_data(rocemu_send_wqe& wqe, const ibv_sge* sges);

}  // namespace rocemu::provider
