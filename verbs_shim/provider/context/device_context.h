// An open device: what stands behind an ibv_context.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "verbs_shim/abi/check.h"
#include "verbs_shim/abi/control.h"
#include "verbs_shim/exchange/shared_memory.h"
#include "verbs_shim/provider/common/clocks.h"
#include "verbs_shim/provider/common/linked_list.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/context/channel.h"
#include "verbs_shim/provider/context/control_connection.h"
#include "verbs_shim/provider/context/event_pipe.h"
#include "verbs_shim/provider/rings/doorbell.h"

namespace rocemu::provider {

struct CompletionQueue;

// The functions by which libibverbs posts, as they are when no fault is about them.
struct PostFunctions {
  decltype(ibv_context_ops::post_send) send = nullptr;
  decltype(ibv_context_ops::post_recv) receive = nullptr;
  decltype(ibv_context_ops::post_srq_recv) srq_receive = nullptr;
};

// Events are purged from one pipe of a context at a time, by its passage.
struct EventPurge {
  Mutex lock;
  Passage passage;
};

// All CQs of a context (queues/inline_cqe_data.h).
struct KnownQueues {
  Mutex lock;
  LinkedList<CompletionQueue> list;
};

struct DeviceState {
  ControlConnection connection;
  Doorbells doorbells;
  EventPipe async_events;
  ChannelList channels;
  EventPurge purge;
  KnownQueues queues;
  rocemu_device_attr limits = {};
  bool yield_when_idle = true;
  const rocemu_check_hooks* checks = nullptr;  // null unless the program is checked (checked/)
  const WallClock wall_clock;                  // shared by all CQs
  uint64_t probe = 0;  // read by the NIC to learn how it reaches this program's memory

  exchange::SharedMemory doorbell_page;
  exchange::SharedMemory engine_page;
  std::atomic<bool> fatal_reported{false};
  PostFunctions ordinary_posts;  // queues/asked_posts.h
};

// libibverbs allocates it, with its own private part before it, and fills `verbs`.
struct DeviceContext {
  ibv_context verbs;
  void* allocation;  // where libibverbs' part begins
  DeviceState state;

  // A control call, whose failure for want of a NIC the program also hears of as an
  // IBV_EVENT_DEVICE_FATAL.
  template <typename Request, typename Reply>
  int call(uint32_t op, Request& request, Reply& reply, ReceivedFds* received = nullptr,
           SentFds sent = {}) {
    const int error = state.connection.call(op, request, reply, received, sent);
    if (error == EIO && state.connection.lost()) report_fatal();
    return error;
  }

  // True while the NIC is there. Looks, which costs a system call.
  bool look_for_nic();

  // Takes what a reader of the asynchronous events gets when the NIC is gone, as read(2) has it: an
  // IBV_EVENT_DEVICE_FATAL unless that was told already, else EIO.
  ssize_t take_fatal(void* data, size_t bytes);

 private:
  void report_fatal();
};

inline DeviceContext& to_context(ibv_context* context) {
  return *reinterpret_cast<DeviceContext*>(context);
}

// Connects `context`, whose `verbs` and `allocation` are set, to device `device_index`: to the
// context that `verbs.cmd_fd` is a ticket of when `imported`, else to a new one. 0 or an errno,
// after which close_context() isn't needed.
int open_context(DeviceContext& context, uint32_t device_index, bool imported);

// Ends the connection, with which the NIC destroys all that was made on it.
void close_context(DeviceContext& context);

}  // namespace rocemu::provider
