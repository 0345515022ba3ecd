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
  std::atomic<uint32_t> takers;  // threads that take an event, or wait for one
  uint32_t taken;                // events, by the lock
  uint32_t owed;  // bytes in the pipe, or read by threads, beyond those of its events; by the lock
  CmChannel* next;
};

// rdma_cm_commands.cc: write(2) on a channel.
ssize_t run_command(CmChannel& channel, const void* data, size_t bytes);

// rdma_cm_events.cc: RDMA_USER_CM_CMD_GET_EVENT, which waits unless the channel is O_NONBLOCK. 0 or
// an errno.
int next_event(CmChannel& channel, rocemu_cm_event& event);

// The channel that a descriptor is, or null.
CmChannel* find_channel(int fd);

// Holds the lock that all calls to the NIC about connections are made under, and reads of the pipes
// but for those that wait. A thread that were cancelled in between would leave it locked.
class CmLock {
 public:
  CmLock();
  ~CmLock();
  CmLock(const CmLock&) = delete;
  CmLock& operator=(const CmLock&) = delete;

  // Gives it up for a moment.
  void pause();

 private:
  int cancel_state_;
};

// Holds back the bytes of a channel's events while the NIC withdraws some of these, as the kernel
// takes an event and what poll(2) says of it at once: a thread that polls meanwhile and then takes
// an event would else wait for one that has gone. Threads that are about to take one are let take
// it first.
class HeldTokens {
 public:
  HeldTokens(CmChannel& channel, CmLock& lock);
  ~HeldTokens();  // puts back what is left
  HeldTokens(const HeldTokens&) = delete;
  HeldTokens& operator=(const HeldTokens&) = delete;

  // So many events have gone.
  void drop(uint32_t count);

 private:
  void put_back();

  CmChannel& channel_;
  int end_ = -1;
  uint32_t count_ = 0;
};

}  // namespace rocemu::preload
