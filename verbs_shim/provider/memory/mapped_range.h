// Finds out what a program has mapped where it registers memory. Looks at the mappings and touches
// no page, so that the cost does not grow with the range.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

namespace rocemu::provider {

// One line of /proc/self/maps, as far as it matters here.
struct Mapping {
  uintptr_t from = 0;
  uintptr_t to = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t offset_bytes = 0;  // place of `from` in the file
  uint64_t device = 0;        // as stat(2) has it
  uint64_t inode = 0;         // 0: no file
  char name[PATH_MAX];        // a path, something in brackets, or empty
};

// 0 when all of [address, address + bytes) is mapped and readable, and writable if `for_writing`;
// EFAULT when it is not, EINVAL when the range wraps round. `mapping` is the one where the range
// begins; what it says counts only when the result is 0 and `to` isn't 0.
int check_mapped(uintptr_t address, size_t bytes, bool for_writing, Mapping& mapping);

}  // namespace rocemu::provider
