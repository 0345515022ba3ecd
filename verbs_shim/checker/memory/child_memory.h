// In a child after fork(2): hears of it when the child reads or writes memory that its parent has
// registered.
//
// The child's copies of whole pages of such memory are closed, and opened at the first touch. Left
// alone is what a touch would say nothing about, or could not be reported of: shared mappings, the
// malloc heap (the allocator looks at it with its locks held), stacks; and all of it in a program
// that handles SIGSEGV itself.
#pragma once

#include <signal.h>

#include "verbs_shim/checker/memory/spans.h"

namespace rocemu::check {

// `at` is where the child was, `address` what it touched. Called in a signal handler of the
// child's.
using ChildTouched = void (*)(rocemu_check_at at, uintptr_t address);

// Once for a process, before the first region is added.
void hear_of_children(ChildTouched touched);

// Regions of the parent's. Thread-safe; its lock is a leaf.
void add_parents_memory(const Span& span);
void remove_parents_memory(const Span& span);

}  // namespace rocemu::check
