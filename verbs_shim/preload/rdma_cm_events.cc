// Waiting for events and taking them: one byte of the channel's pipe for each.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "verbs_shim/preload/nic_connection.h"
#include "verbs_shim/preload/rdma_cm.h"
#include "verbs_shim/preload/rdma_cm_answers.h"
#include "verbs_shim/preload/rdma_cm_check.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

bool nonblocking(const CmChannel& channel) {
  const int flags = fcntl(channel.fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// Waits until the channel has an event, as its O_NONBLOCK says: 0 or an errno. Where it has to wait
// it reads the event's byte, since the kernel goes on with read(2) after a signal whose handler has
// SA_RESTART, as it does with the kernel's own channels, and never with poll(2) (signal(7)).
int wait_for_event(const CmChannel& channel, uint32_t& bytes_taken) {
  pollfd readable = {channel.fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&readable, 1, 0);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return errno;
  if (ready > 0) return (readable.revents & POLLIN) != 0 ? 0 : EIO;
  if (nonblocking(channel)) return EAGAIN;
  char byte;
  const ssize_t got = read_token(channel.fd, byte);
  if (got < 0) return errno;
  bytes_taken = static_cast<uint32_t>(got);
  return got > 0 ? 0 : EIO;
}

int take_event(const CmChannel& channel, uint32_t bytes_taken, rocemu_cm_event& event) {
  rocemu_cm_channel request = {};
  request.header.op = ROCEMU_OP_CM_NEXT_EVENT;
  request.header.length = sizeof(request);
  request.channel = channel.number;
  CmLock lock;
  const int error = call_nic(&request.header, &event.header, sizeof(event));
  if (error != 0) return error;
  keep_answers(event.answers);
  take_tokens(channel, 1 - bytes_taken);
  return 0;
}

}  // namespace

// Another thread may be quicker than this one: then it waits for the next event. When one closes
// the channel meanwhile, this one waits on, as it does in the kernel, whose file lives while it is
// used.
int next_event(CmChannel& channel, rocemu_cm_event& event) {
  const uint32_t closed = channel.closed;
  for (;;) {
    uint32_t bytes_taken = 0;
    int error = wait_for_event(channel, bytes_taken);
    if (channel.closed != closed) {
      pause();
      return EINTR;
    }
    if (error == 0) error = take_event(channel, bytes_taken, event);
    if (error != EAGAIN || nonblocking(channel)) return error;
  }
}

// There can be fewer when the program has made the pipe smaller than its events need.
void take_tokens(const CmChannel& channel, uint32_t count) {
  char bytes[64];
  pollfd readable = {channel.fd, POLLIN, 0};
  while (count > 0 && poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0) {
    const ssize_t got =
        real().read(channel.fd, bytes, count < sizeof(bytes) ? count : sizeof(bytes));
    if (got <= 0) return;
    count -= static_cast<uint32_t>(got);
  }
}

}  // namespace rocemu::preload
