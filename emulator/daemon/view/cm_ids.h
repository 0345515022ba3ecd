// The ids of librdmacm, as ROCEMU_OP_LIST_RESOURCES answers them. To be called on the control
// thread.
#pragma once

#include <cstdint>

#include "emulator/cm/rdma_cm.h"
#include "verbs_shim/abi/resources.h"

namespace rocemu::daemon {

// Fills in what the reply has behind its header: ids from the number `from` on that are on the
// device, and those that listen on all of them.
void list_cm_ids(const cm::RdmaCm& cm, uint32_t device, uint32_t from, rocemu_resources& reply);
uint32_t count_cm_ids(const cm::RdmaCm& cm, uint32_t device);

}  // namespace rocemu::daemon
