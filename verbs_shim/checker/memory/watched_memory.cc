#include "verbs_shim/checker/memory/watched_memory.h"

#include <dlfcn.h>

namespace rocemu::check {
namespace {

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
  if (watch() != nullptr) watch()->tell(going);
}

void watch_memory(const Span& span) {
  if (watch() != nullptr) watch()->add(reinterpret_cast<const void*>(span.from), span.bytes);
}

void unwatch_memory(const Span& span) {
  if (watch() != nullptr) watch()->remove(reinterpret_cast<const void*>(span.from), span.bytes);
}

}  // namespace rocemu::check
