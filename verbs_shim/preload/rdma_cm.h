// /dev/infiniband/rdma_cm: an opened one is a channel of rocemud's, and its descriptor the read end
// of a pipe with one byte for each event (verbs_shim/abi/cm.h). librdmacm writes commands to it.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "verbs_shim/abi/cm.h"

namespace rocemu::preload {

// Opens /dev/infiniband/rdma_cm as open(2) would: the descriptor, or -1 with errno.
int open_rdma_cm(int flags, dev_t cdev);

// A channel of this process. Never freed, since a thread may still hold one that another has
// closed.
struct CmChannel {
  int fd;
  uint32_t number;               // rocemud's
  std::atomic<uint32_t> closed;  // counts its closings, since it is used again
  CmChannel* next;
};

// rdma_cm_commands.cc: write(2) on a channel.
ssize_t run_command(CmChannel& channel, const void* data, size_t bytes);

// rdma_cm_events.cc: RDMA_USER_CM_CMD_GET_EVENT, which waits unless the channel is O_NONBLOCK. 0 or
// an errno.
int next_event(CmChannel& channel, rocemu_cm_event& event);

// The channel of a descriptor, or null.
CmChannel* find_channel(int fd);

// Takes bytes of events off the pipe, as many as there are at most. Needs the lock.
void take_tokens(const CmChannel& channel, uint32_t count);

// Holds the lock that all calls to the NIC about connections, and reads of the pipes, are made
// under. A thread that were cancelled in between would leave it locked.
class CmLock {
 public:
  CmLock();
  ~CmLock();
  CmLock(const CmLock&) = delete;
  CmLock& operator=(const CmLock&) = delete;

 private:
  int cancel_state_;
};

}  // namespace rocemu::preload
