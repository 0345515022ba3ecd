// Events, connection management, and memory that goes.
#include <dlfcn.h>

#include <cstring>

#include "verbs_shim/abi/cm_watch.h"
#include "verbs_shim/checker/hooks/checker.h"
#include "verbs_shim/checker/memory/readable_pages.h"

namespace rocemu::check {
namespace {

void waiting(rocemu_check_at at, int channel_fd) {
  Hook hook(at);
  const auto number = static_cast<uintptr_t>(channel_fd);
  const auto channel =
      hook.checker.model.find(ROCEMU_CHECK_CHANNEL, reinterpret_cast<void*>(number));
  if (channel == nullptr) return;
  for (const auto& detector : hook.checker.detectors) {
    detector->on_waiting(hook.call, static_cast<Channel&>(*channel));
  }
}

void cq_event_taken(rocemu_check_at at, void* shadow) {
  Hook hook(at);
  auto* cq = hook.object<CompletionQueue>(shadow);
  if (cq == nullptr) return;
  ++cq->events_taken;
  for (const auto& detector : hook.checker.detectors) {
    detector->on_cq_event_taken(hook.call, *cq);
  }
  cq->tells_next_poll = true;
}

void async_event_taken(rocemu_check_at at, ibv_context* verbs, const ibv_async_event* event) {
  Hook hook(at);
  const auto context = hook.checker.model.find_context(verbs);
  if (context == nullptr) return;
  for (const auto& detector : hook.checker.detectors) {
    detector->on_async_event_taken(hook.call, *context, *event);
  }
}

void memory_going(rocemu_check_at at, const void* address, size_t bytes, const char* how) {
  forget_readable_pages();
  if (Hook::is_inside()) return;
  // The memory stays, with other rights.
  if (std::strcmp(how, "mprotect") == 0) return;
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) {
    detector->on_memory_going(hook.call, address, bytes, how);
  }
}

void cm_waiting(rocemu_check_at at, int channel_fd) {
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) {
    detector->on_cm_waiting(hook.call, channel_fd);
  }
}

void cm_waited(int channel_fd) {
  const int error = errno;
  for (const auto& detector : current_checker()->detectors) detector->on_cm_waited(channel_fd);
  errno = error;
}

void cm_channel_closing(rocemu_check_at at, int channel_fd) {
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) {
    detector->on_cm_channel_going(hook.call, channel_fd);
  }
}

void cm_listening(rocemu_check_at at, uint32_t refused) {
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) detector->on_listening(hook.call, refused);
}

}  // namespace

void hear_of_cm() {
  static constexpr rocemu_cm_hooks kHooks = {cm_waiting, cm_waited, cm_channel_closing,
                                             cm_listening};
  void* const symbol = dlsym(RTLD_DEFAULT, ROCEMU_PRELOAD_TELL_OF_CM);
  const auto tell = reinterpret_cast<decltype(&rocemu_preload_tell_of_cm_v1)>(symbol);
  if (tell != nullptr) tell(&kHooks);
}

void fill_event_hooks(rocemu_check_hooks& hooks) {
  hooks.waiting = waiting;
  hooks.cq_event_taken = cq_event_taken;
  hooks.async_event_taken = async_event_taken;
  hooks.memory_going = memory_going;
}

}  // namespace rocemu::check
