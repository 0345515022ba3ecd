#include "verbs_shim/checker/memory/watched_memory.h"

#include <dlfcn.h>

#include <atomic>

namespace rocemu::check {
namespace {

std::atomic<bool> is_heard_of = false;
// Numbers of regions.
std::atomic<int64_t> watched = 0;
std::atomic<int64_t> unwatched = 0;

const rocemu_memory_watch* watch() {
  static const rocemu_memory_watch* const found = [] {
    void* const symbol = dlsym(RTLD_DEFAULT, ROCEMU_MEMORY_WATCH);
    const auto entry = reinterpret_cast<decltype(&rocemu_memory_watch_v1)>(symbol);
    return entry == nullptr ? nullptr : entry();
  }();
  return found;
}

}  // namespace

void hear_of_memory(rocemu_memory_going going) {
  if (watch() == nullptr) return;
  watch()->tell(going);
  is_heard_of = true;
}

void watch_memory(const Span& span) {
  if (watch() == nullptr) return;
  (span.bytes == 0 ? unwatched : watched).fetch_add(1);
  if (span.bytes != 0) watch()->add(reinterpret_cast<const void*>(span.from), span.bytes);
}

void unwatch_memory(const Span& span) {
  if (watch() == nullptr) return;
  (span.bytes == 0 ? unwatched : watched).fetch_sub(1);
  if (span.bytes != 0) watch()->remove(reinterpret_cast<const void*>(span.from), span.bytes);
}

bool is_all_memory_watched() {
  return is_heard_of.load(std::memory_order_relaxed) &&
         watched.load(std::memory_order_relaxed) > 0 &&
         unwatched.load(std::memory_order_relaxed) == 0;
}

void reset_watched_memory_after_fork() { is_heard_of = false; }

}  // namespace rocemu::check
