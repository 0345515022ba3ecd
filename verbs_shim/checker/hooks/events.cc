// Events, and memory that goes.
#include "verbs_shim/checker/hooks/checker.h"

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
  if (Hook::is_inside()) return;
  Hook hook(at);
  for (const auto& detector : hook.checker.detectors) {
    detector->on_memory_going(hook.call, address, bytes, how);
  }
}

}  // namespace

void fill_event_hooks(rocemu_check_hooks& hooks) {
  hooks.waiting = waiting;
  hooks.cq_event_taken = cq_event_taken;
  hooks.async_event_taken = async_event_taken;
  hooks.memory_going = memory_going;
}

}  // namespace rocemu::check
