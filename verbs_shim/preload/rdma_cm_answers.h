// Keeps what rocemud has answered in advance about ids (rocemu_cm_answers), until it may no longer
// hold: librdmacm asks three or four questions about each connection, and each would be a message
// there and back. All calls need the lock of rdma_cm.h.
#pragma once

#include "verbs_shim/abi/cm.h"

namespace rocemu::preload {

// Keeps them in place of what was known about the id. When there are many ids the older ones are
// forgotten.
void keep_answers(const rocemu_cm_answers& answers);
// The answers about an id, or null.
const rocemu_cm_answers* find_answers(uint32_t id);
void forget_answers(uint32_t id);
void forget_all_answers();

}  // namespace rocemu::preload
