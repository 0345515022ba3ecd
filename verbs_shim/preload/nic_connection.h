// This process's connection to rocemud for connection management: requests and replies as
// verbs_shim/abi/cm.h has them, one at a time. It is made at the first call and lasts until it is
// given up. A forked child has none of it: it makes its own.
#pragma once

#include <stddef.h>

#include "verbs_shim/abi/cm.h"

namespace rocemu::preload {

// Sends `request`, whose header is filled in here but for op and length, with the descriptor `fd`
// if that is not -1, and waits for the reply. 0, the errno that the reply carries, or EIO when the
// NIC is gone, or the program has closed the connection: then until that is given up. A reply with
// a status leaves the body of `reply` zero. Precondition: the caller holds the lock of rdma_cm.cc.
int call_nic(rocemu_header* request, rocemu_header* reply, size_t reply_bytes, int fd = -1);

// Gives the connection up, with all that the NIC has for it, and in a forked child: there it is the
// parent's. The next call makes another.
void forget_nic_connection();

}  // namespace rocemu::preload
