// Waiting for events and taking them: one byte of the channel's pipe for each.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/uio.h>
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

// 0 when the channel has an event, EAGAIN when it has none, or another errno.
int look_for_event(const CmChannel& channel) {
  pollfd readable = {channel.fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&readable, 1, 0);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return errno;
  if (ready == 0) return EAGAIN;
  return (readable.revents & POLLIN) != 0 ? 0 : EIO;
}

// Waits for an event and reads its byte, since the kernel goes on with read(2) after a signal whose
// handler has SA_RESTART, as it does with the kernel's own channels, and never with poll(2)
// (signal(7)). 0 or an errno.
int wait_for_token(const CmChannel& channel) {
  char byte;
  const ssize_t got = read_token(channel.fd, byte);
  if (got < 0) return errno;
  return got > 0 ? 0 : EIO;
}

// The channel's pipe opened anew: an end that never waits, whatever other threads do with the
// program's. -1 when the channel has been closed, or the pipe cannot be opened. Needs the lock, as
// those who close channels do.
int open_end(const CmChannel& channel, int access) {
  if (find_channel(channel.fd) != &channel) return -1;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", channel.fd);
  return real().open(path, access | O_NONBLOCK | O_CLOEXEC);
}

// Takes bytes of events off the pipe, as many as there are at most, and returns how many. `flags`
// are those of preadv2(2). False when nothing can be read like that.
bool take_from(int end, uint32_t count, int flags, uint32_t& taken) {
  char bytes[64];
  taken = 0;
  while (taken < count) {
    const uint32_t rest = count - taken;
    const iovec into = {bytes, rest < sizeof(bytes) ? rest : sizeof(bytes)};
    const ssize_t got = preadv2(end, &into, 1, -1, flags);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return taken > 0;
    if (got <= 0) break;
    taken += static_cast<uint32_t>(got);
  }
  return true;
}

// Returns how many there were of `count`. Needs the lock.
uint32_t take_tokens(const CmChannel& channel, uint32_t count) {
  uint32_t taken = 0;
  if (count == 0 || find_channel(channel.fd) != &channel) return 0;
  if (take_from(channel.fd, count, RWF_NOWAIT, taken)) return taken;
  // Linux before 6.4 reads no pipe like that.
  if (const int end = open_end(channel, O_RDONLY); end >= 0) {
    take_from(end, count, 0, taken);
    real().close(end);
    return taken;
  }
  // Without a descriptor to spare this waits where another thread reads the byte first.
  for (uint32_t one = 1; one > 0 && taken < count && look_for_event(channel) == 0; taken += one) {
    take_from(channel.fd, 1, 0, one);
  }
  return taken;
}

int take_event(CmChannel& channel, uint32_t closed, uint32_t bytes_taken, rocemu_cm_event& event) {
  CmLock lock;
  if (channel.closed != closed) return EBADF;
  rocemu_cm_channel request = {};
  request.header.op = ROCEMU_OP_CM_NEXT_EVENT;
  request.header.length = sizeof(request);
  request.channel = channel.number;
  const int error = call_nic(&request.header, &event.header, sizeof(event));
  if (error == 0) {
    ++channel.taken;
    keep_answers(event.answers);
    // Another thread may have read its byte, and then finds no event for it.
    const uint32_t due = 1 - bytes_taken;
    channel.owed += due - take_tokens(channel, due);
  } else if (error == EAGAIN && channel.owed > 0) {
    channel.owed -= bytes_taken;
  }
  // What was taken may have been another event than that of the byte.
  channel.owed -= take_tokens(channel, channel.owed);
  return error;
}

// Another thread may be quicker than this one: then it waits for the next event.
int take_next(CmChannel& channel, uint32_t closed, rocemu_cm_event& event) {
  for (;;) {
    if (channel.closed != closed) return EBADF;
    uint32_t bytes_taken = 0;
    int error = look_for_event(channel);
    if (error == EAGAIN && !nonblocking(channel)) {
      error = wait_for_token(channel);
      bytes_taken = 1;
    }
    if (error == 0) error = take_event(channel, closed, bytes_taken, event);
    if (error != EAGAIN || nonblocking(channel)) return error;
  }
}

void leave(void* channel) { --static_cast<CmChannel*>(channel)->takers; }

}  // namespace

// When another thread closes the channel meanwhile, this one waits on, as it does in the kernel,
// whose file lives while it is used.
int next_event(CmChannel& channel, rocemu_cm_event& event) {
  const uint32_t closed = channel.closed;
  const bool waits = !nonblocking(channel);
  int error;
  ++channel.takers;
  pthread_cleanup_push(leave, &channel);
  error = take_next(channel, closed, event);
  pthread_cleanup_pop(1);
  if (error != 0 && waits && channel.closed != closed) {
    pause();
    return EINTR;
  }
  return error;
}

// As many takers as there are now are let take what is there, as long as they can be expected to
// get a processor for it. The end is open under the lock alone: a child that is forked meanwhile
// has none.
HeldTokens::HeldTokens(CmChannel& channel, CmLock& lock) : channel_(channel) {
  constexpr int kPauses = 200;
  const uint32_t taken = channel.taken;
  const uint32_t takers = channel.takers;
  for (int i = 0; find_channel(channel.fd) == &channel && look_for_event(channel) == 0; ++i) {
    lock.pause();  // a thread that poll(2) has woken may be on its way
    end_ = open_end(channel, O_RDWR);
    if (end_ < 0) return;
    take_from(end_, UINT32_MAX, 0, count_);
    if (channel.takers == 0 || channel.taken - taken >= takers + 1 || i + 1 == kPauses) return;
    put_back();
  }
}

HeldTokens::~HeldTokens() {
  if (end_ >= 0) put_back();
}

void HeldTokens::put_back() {
  static constexpr char kBytes[64] = {};
  while (count_ > 0) {
    const ssize_t put =
        real().write(end_, kBytes, count_ < sizeof(kBytes) ? count_ : sizeof(kBytes));
    if (put <= 0) break;
    count_ -= static_cast<uint32_t>(put);
  }
  count_ = 0;
  real().close(end_);
  end_ = -1;
}

void HeldTokens::drop(uint32_t count) {
  const uint32_t held = count < count_ ? count : count_;
  count_ -= held;
  count -= held;
  channel_.owed += count - take_tokens(channel_, count);
}

}  // namespace rocemu::preload
