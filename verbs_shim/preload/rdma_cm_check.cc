#include "verbs_shim/preload/rdma_cm_check.h"

#include <pthread.h>

#include <atomic>

#include "verbs_shim/abi/cm_watch.h"
#include "verbs_shim/preload/real.h"

namespace rocemu::preload {
namespace {

std::atomic<const rocemu_cm_hooks*> hooks{nullptr};

const rocemu_cm_hooks* told() { return hooks.load(std::memory_order_acquire); }

struct Wait {
  const rocemu_cm_hooks* hooks;
  int channel_fd;
};

void end_wait(void* wait) {
  const Wait& over = *static_cast<const Wait*>(wait);
  over.hooks->waited(over.channel_fd);
}

// A call of the program's into librdmacm, which has come here by a system call.
#define CALL_OF_PROGRAM(name) \
  { name, __builtin_return_address(0), __builtin_frame_address(0) }

__attribute__((noinline)) ssize_t read_told(const rocemu_cm_hooks* told, int channel_fd,
                                            char& byte) {
  const rocemu_check_call at = CALL_OF_PROGRAM("rdma_get_cm_event");
  Wait wait = {told, channel_fd};
  ssize_t got;
  told->waiting(&at, channel_fd);
  pthread_cleanup_push(end_wait, &wait);
  got = real().read(channel_fd, &byte, 1);
  pthread_cleanup_pop(1);
  return got;
}

}  // namespace

ssize_t read_token(int channel_fd, char& byte) {
  if (told() != nullptr) return read_told(told(), channel_fd, byte);
  return real().read(channel_fd, &byte, 1);
}

void tell_closing(int channel_fd) {
  if (told() == nullptr) return;
  const rocemu_check_call at = CALL_OF_PROGRAM("rdma_destroy_event_channel");
  told()->channel_closing(&at, channel_fd);
}

void tell_listening(uint32_t refused) {
  if (told() == nullptr) return;
  const rocemu_check_call at = CALL_OF_PROGRAM("rdma_listen");
  told()->listening(&at, refused);
}

}  // namespace rocemu::preload

ROCEMU_EXPORT void rocemu_preload_tell_of_cm_v1(const rocemu_cm_hooks* hooks) {
  rocemu::preload::hooks.store(hooks, std::memory_order_release);
}
