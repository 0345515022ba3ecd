#include "verbs_shim/preload/rdma_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "verbs_shim/abi/control.h"
#include "verbs_shim/preload/fd_table.h"
#include "verbs_shim/preload/nic_connection.h"
#include "verbs_shim/preload/rdma_cm_answers.h"
#include "verbs_shim/preload/rdma_cm_check.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
CmChannel* unused = nullptr;
size_t open_channels = 0;

ssize_t on_write(void* channel, const void* data, size_t bytes) {
  return run_command(*static_cast<CmChannel*>(channel), data, bytes);
}

// Needs the lock.
void give_back(CmChannel* channel) {
  channel->next = unused;
  unused = channel;
}

void on_close(void* context) {
  auto* channel = static_cast<CmChannel*>(context);
  tell_closing(channel->fd);
  ++channel->closed;
  rocemu_cm_channel request = {};
  request.header.op = ROCEMU_OP_CM_CLOSE_CHANNEL;
  request.header.length = sizeof(request);
  request.channel = channel->number;
  rocemu_header reply;
  CmLock lock;
  call_nic(&request.header, &reply, sizeof(reply));
  --open_channels;
  give_back(channel);
}

constexpr rocemu_fd_watch kWatch = {&on_write, &on_close, nullptr, nullptr, nullptr};

void before_fork() { pthread_mutex_lock(&mutex); }
void after_fork() { pthread_mutex_unlock(&mutex); }
void in_child() {
  forget_nic_connection();
  forget_all_answers();
  open_channels = 0;
  pthread_mutex_unlock(&mutex);
}

// While no other thread can be in the middle of a fork, which would not know of these.
__attribute__((constructor)) void on_load() {
  real();
  if (active()) pthread_atfork(before_fork, after_fork, in_child);
}

// Needs the lock.
CmChannel* new_channel() {
  CmChannel* channel = unused;
  if (channel != nullptr) {
    unused = channel->next;
  } else {
    channel = static_cast<CmChannel*>(calloc(1, sizeof(*channel)));
  }
  return channel;
}

// Has rocemud write to the pipe; 0 or an errno. Needs the lock.
int open_channel(CmChannel& channel, int write_end) {
  rocemu_header request = {};
  request.op = ROCEMU_OP_CM_OPEN_CHANNEL;
  request.length = sizeof(request);
  rocemu_cm_channel reply;
  const int error = call_nic(&request, &reply.header, sizeof(reply), write_end);
  channel.number = reply.channel;
  return error;
}

}  // namespace

CmLock::CmLock() {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  pthread_mutex_lock(&mutex);
}

void CmLock::pause() {
  constexpr timespec kMoment = {0, 20'000};
  pthread_mutex_unlock(&mutex);
  nanosleep(&kMoment, nullptr);
  pthread_mutex_lock(&mutex);
}

CmLock::~CmLock() {
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(cancel_state_, nullptr);
}

CmChannel* find_channel(int fd) {
  FdEntry* entry = find_entry(fd);
  if (entry == nullptr || entry->watch.load(std::memory_order_acquire) != &kWatch) return nullptr;
  // Another file by now is left for who meets it without the lock, which dropping it takes.
  if (!is_same_file(fd, *entry)) return nullptr;
  return static_cast<CmChannel*>(entry->context);
}

int open_rdma_cm(int flags, dev_t cdev) {
  int ends[2];
  if (pipe2(ends, flags & (O_CLOEXEC | O_NONBLOCK)) != 0) return -1;
  fchmod(ends[1], ROCEMU_EVENT_PIPE_MODE);
  CmChannel* channel;
  int error = ENOMEM;
  {
    CmLock lock;
    channel = new_channel();
    if (channel != nullptr) {
      channel->fd = ends[0];
      channel->owed = 0;
      error = open_channel(*channel, ends[1]);
      // A NIC that was started anew knows nothing of what this process had.
      if (error == EIO && open_channels == 0) {
        forget_nic_connection();
        forget_all_answers();
        error = open_channel(*channel, ends[1]);
      }
      if (error == 0) {
        ++open_channels;
      } else {
        give_back(channel);
      }
    }
  }
  real().close(ends[1]);
  if (error == 0) {
    note_cdev(ends[0], cdev);
    error = rocemu_preload_watch_fd_v4(ends[0], &kWatch, channel);
    if (error == 0) return ends[0];
    on_close(channel);
  }
  real().close(ends[0]);
  errno = error;
  return -1;
}

}  // namespace rocemu::preload
