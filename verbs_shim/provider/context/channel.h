// Completion channels. libibverbs makes one by writing a command to the device's descriptor and
// gives it up by closing its own; the preload library shows both to the provider. The NIC hears of
// a channel with its first CQ.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/provider/common/linked_list.h"
#include "verbs_shim/provider/common/mutex.h"
#include "verbs_shim/provider/context/event_pipe.h"

namespace rocemu::provider {

struct DeviceContext;
class ReceivedFds;

struct Channel {
  DeviceContext* context;
  EventPipe events;
  uint32_t handle;  // the NIC's
  int write_end;    // until the NIC has it; then -1
  uint32_t users;   // CQs that report to it
  bool closed;      // by the program; goes when the last user does
  ListLinks<Channel> links;
};

class ChannelList {
 public:
  // Starts listening to what is written to the context's cmd_fd. 0 or an errno; ENOSYS, with a
  // message, when the preload library isn't there.
  int open(DeviceContext& context);
  // The NIC's side has gone with the connection; the descriptors stay the program's.
  void close();

  // Makes a channel; its descriptor, or -1 with errno.
  int create();

  // The channel behind libibverbs' descriptor, which gets one more user; null for none. release()
  // ends the use.
  Channel* acquire(int fd);
  // Makes a CQ that reports to it, and the NIC's side of the channel if that is not there yet: 0 or
  // an errno.
  int create_cq(Channel& channel, rocemu_create_cq& request, rocemu_create_cq_reply& reply,
                ReceivedFds& received);
  void release(Channel* channel);

 private:
  static ssize_t on_command(void* list, const void* data, size_t bytes);
  static void on_close(void* channel);
  static int on_ioctl(void* list, unsigned long request, void* argument);
  static ssize_t on_last_event(void* list, void* data, size_t bytes);
  static ssize_t after_last_event(void* channel, void* data, size_t bytes);
  static void before_read(void* channel, int fd);
  void remove(Channel* channel);
  static void free(Channel* channel);

  DeviceContext* context_ = nullptr;
  LinkedList<Channel> channels_;
  Mutex mutex_;
};

}  // namespace rocemu::provider
