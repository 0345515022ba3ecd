// Waiting for events and taking them: one byte of the channel's pipe for each.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
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

// Takes bytes of events off the pipe, as many as there are at most, and returns how many. There can
// be fewer when the program has made the pipe smaller than its events need. Needs the lock.
uint32_t take_tokens(const CmChannel& channel, uint32_t count) {
  char bytes[64];
  uint32_t taken = 0;
  while (taken < count && look_for_event(channel) == 0) {
    const uint32_t rest = count - taken;
    const ssize_t got = real().read(channel.fd, bytes, rest < sizeof(bytes) ? rest : sizeof(bytes));
    if (got <= 0) break;
    taken += static_cast<uint32_t>(got);
  }
  return taken;
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

// Another thread may be quicker than this one: then it waits for the next event.
int take_next(CmChannel& channel, uint32_t closed, rocemu_cm_event& event) {
  for (;;) {
    uint32_t bytes_taken = 0;
    int error = look_for_event(channel);
    if (error == EAGAIN && !nonblocking(channel)) {
      error = wait_for_token(channel);
      bytes_taken = 1;
    }
    if (error == 0) {
      error = channel.closed != closed ? EBADF : take_event(channel, bytes_taken, event);
    }
    if (error != EAGAIN || nonblocking(channel)) return error;
  }
}

void leave(void* channel) { --static_cast<CmChannel*>(channel)->takers; }

}  // namespace

// When another thread closes the channel meanwhile, this one waits on, as it does in the kernel,
// whose file lives while it is used.
int next_event(CmChannel& channel, rocemu_cm_event& event) {
  const uint32_t closed = channel.closed;
  int error;
  ++channel.takers;
  pthread_cleanup_push(leave, &channel);
  error = take_next(channel, closed, event);
  pthread_cleanup_pop(1);
  if (error != 0 && channel.closed != closed) {
    pause();
    return EINTR;
  }
  return error;
}

// Takers are let take what is there. They are not waited for long, since there may always be
// another one.
HeldTokens::HeldTokens(CmChannel& channel, CmLock& lock) : channel_(channel) {
  constexpr int kPauses = 50;
  if (look_for_event(channel) != 0) return;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", channel.fd);
  write_end_ = real().open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (write_end_ < 0) return;
  for (int i = 0; i < kPauses; ++i) {
    lock.pause();  // a thread that poll(2) has woken may be on its way
    count_ = take_tokens(channel, UINT32_MAX);
    if (count_ == 0 || channel.takers == 0) return;
    put_back();
  }
}

HeldTokens::~HeldTokens() {
  if (write_end_ < 0) return;
  put_back();
  real().close(write_end_);
}

void HeldTokens::put_back() {
  static constexpr char kBytes[64] = {};
  while (count_ > 0) {
    const ssize_t put =
        real().write(write_end_, kBytes, count_ < sizeof(kBytes) ? count_ : sizeof(kBytes));
    if (put <= 0) break;
    count_ -= static_cast<uint32_t>(put);
  }
  count_ = 0;
}

void HeldTokens::drop(uint32_t count) {
  const uint32_t held = count < count_ ? count : count_;
  count_ -= held;
  take_tokens(channel_, count - held);
}

}  // namespace rocemu::preload
