// The commands of the kernel's rdma_ucm (rdma/rdma_user_cm.h, ABI version 4), served by cm::RdmaCm:
// all but GET_EVENT (cm_events.h).
#pragma once

#include "base/time.h"
#include "emulator/cm/rdma_cm.h"
#include "verbs_shim/abi/cm.h"

namespace rocemu::daemon {

// Runs one command and fills in the answer. 0, or the errno that the program's write(2) fails with:
// EINVAL too short or no such command, ENOSPC no room for the answer, ENOSYS not served, or what
// the call itself fails with.
// Precondition: in_bytes and option_bytes are no more than their fields hold.
int run_cm_command(cm::RdmaCm& cm, TimeNs now, cm::OwnerId owner, const rocemu_cm_command& command,
                   rocemu_cm_reply& reply);

}  // namespace rocemu::daemon
