// The ticket that a context's descriptor is: verbs_shim/abi/import.h.
#pragma once

#include "verbs_shim/abi/import.h"
#include "verbs_shim/provider/context/device_context.h"

namespace rocemu::provider {

// Puts the context's ticket in the place of its cmd_fd. 0 or an errno.
int take_ticket(DeviceContext& context);

// False when `fd` is no ticket of this release.
bool read_ticket(int fd, rocemu_context_ticket& ticket);

int join_context(DeviceContext& context, const rocemu_context_ticket& ticket);

}  // namespace rocemu::provider
