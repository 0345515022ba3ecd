// Finds where the program's memory is a shared memory region: a shared mapping of a memfd that the
// provider put in the place of private memory when that was registered, so that the NIC can map it.
//
// For use below an allocator, which may hold its locks: nothing here allocates, locks, or has
// stdio.
#pragma once

#include <stdint.h>

// The name of the memfd.
#define ROCEMU_REGION_FILE "rocemu-region"

namespace rocemu::exchange {

// A part of one mapping; both ends are at a page.
struct RegionPart {
  uintptr_t from;
  uintptr_t to;
  int protection;  // PROT_*, now
};

// Looks for parts of regions in [at, end), which may have holes, and hands them to `on_part` in the
// order of addresses, until that says false. `at` moves on with what has been looked at.
struct RegionWalk {
  uintptr_t at;
  uintptr_t end;
  bool (*on_part)(void* context, const RegionPart& part);
  void* context;
};

// 0, or why the mappings cannot be seen. Without /proc there are none: the provider, too, needs it.
int visit_regions(RegionWalk& walk);

// The two ways it has, on an open /proc/self/maps: PROCMAP_QUERY, an error of which says nothing
// about the rest of the walk (is_unknown_call() of it where the kernel has no such queries), and
// the text.
int query_regions(int maps, RegionWalk& walk);
int read_regions(int maps, RegionWalk& walk);

}  // namespace rocemu::exchange
