// The program's side of abi/memory_watch.h: nothing is watched where librocemu-memory-watch.so was
// not loaded.
#pragma once

#include "verbs_shim/abi/memory_watch.h"
#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

void hear_of_memory(rocemu_memory_going going);
// An empty span stands for memory that can't be watched.
void watch_memory(const Span& span);
void unwatch_memory(const Span& span);

// True while regions are watched, and all of them: memory that goes is heard of.
bool is_all_memory_watched();
// In the child after fork(2), where nothing is heard of.
void reset_watched_memory_after_fork();

}  // namespace rocemu::check
