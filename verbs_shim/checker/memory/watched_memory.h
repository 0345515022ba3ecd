// The program's side of abi/memory_watch.h: nothing is watched where librocemu-memory-watch.so was
// not loaded.
#pragma once

#include "verbs_shim/abi/memory_watch.h"
#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

void hear_of_memory(rocemu_memory_going going);
void watch_memory(const Span& span);
void unwatch_memory(const Span& span);

}  // namespace rocemu::check
