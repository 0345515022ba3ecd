#include "verbs_shim/provider/queues/inline_cqe_data.h"

#include <errno.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs_shim/provider/common/small_copy.h"

namespace rocemu::provider {
namespace {

// The caller itself may hold it, between ibv_start_poll and ibv_end_poll.
bool lock_in_time(Mutex& mutex) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (mutex.try_lock()) return true;
    sched_yield();
  }
  return false;
}

// As deliver(), to memory that the program may have unmapped already: then nothing is done, where
// the kernel lets a program ask so.
void deliver_if_there(const rocemu_cqe& completion) {
  if (completion.inline_bytes == 0) return;
  const iovec from = {const_cast<uint8_t*>(completion.inline_data), completion.inline_bytes};
  const iovec to = {reinterpret_cast<void*>(static_cast<uintptr_t>(completion.inline_address)),
                    completion.inline_bytes};
  const ssize_t written = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
  if (written < 0 && errno != EFAULT) deliver(completion);
}

}  // namespace

void deliver(const rocemu_cqe& completion) {
  if (completion.inline_bytes == 0) return;
  static_assert(sizeof(completion.inline_data) <= kSmallCopyMax);
  copy_small(reinterpret_cast<void*>(static_cast<uintptr_t>(completion.inline_address)),
             completion.inline_data, completion.inline_bytes);
}

void make_known(CompletionQueue& queue) {
  DeviceState& state = to_context(queue.verbs.cq.context).state;
  Lock lock(state.queues.lock);
  state.queues.list.add(queue, queue.known);
}

void forget(CompletionQueue& queue) {
  DeviceState& state = to_context(queue.verbs.cq.context).state;
  Lock lock(state.queues.lock);
  state.queues.list.remove(queue.known);
}

void deliver_untaken(DeviceContext& context, uint64_t address, uint64_t bytes) {
  Lock lock(context.state.queues.lock);
  for (auto* known = context.state.queues.list.first(); known != nullptr; known = known->next) {
    CompletionQueue* queue = known->object;
    if (!lock_in_time(queue->lock)) continue;
    queue->ring.visit_untaken([&](rocemu_cqe& completion) {
      if (completion.inline_address - address >= bytes) return;
      deliver_if_there(completion);
      completion.inline_bytes = 0;
    });
    queue->lock.unlock();
  }
}

}  // namespace rocemu::provider
