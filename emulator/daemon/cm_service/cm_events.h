// RDMA_USER_CM_CMD_GET_EVENT, with what librdmacm asks for behind the event in advance.
#pragma once

#include "emulator/cm/rdma_cm.h"
#include "verbs_shim/abi/cm.h"

namespace rocemu::daemon {

// Takes the channel's next event. 0 or an errno, as verbs_shim/abi/cm.h says.
int take_event(cm::RdmaCm& cm, cm::OwnerId owner, cm::ChannelId channel, rocemu_cm_event& reply);

}  // namespace rocemu::daemon
