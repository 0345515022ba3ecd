// madvise: what programs and allocators rely on when the advice is about private memory, kept for
// memory that became a shared region when it was registered (region_mappings.h).
//
// MADV_DONTNEED promises that private memory reads as zeros afterwards. For a shared mapping it
// only lets the page tables go, so the pages are taken out of the memfd, too. MADV_FREE lets the
// old content stay for as long as the kernel likes; for shared mappings the kernel refuses it.
//
// The C library's own calls (malloc_trim, the stacks of ended threads) do not come here. They don't
// count on zeros.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_shim/exchange/region_mappings.h"
#include "verbs_shim/preload/real.h"

using namespace rocemu::preload;
using rocemu::exchange::RegionPart;
using rocemu::exchange::RegionWalk;
using rocemu::exchange::visit_regions;

namespace {

// An allocator may come here before the library is loaded, with locks that dlsym had better not
// meet.
int next_madvise(void* address, size_t bytes, int advice) {
  if (!detail::ready.load(std::memory_order_acquire)) [[unlikely]]
    return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
  return detail::functions.madvise(address, bytes, advice);
}

int advise(uintptr_t from, uintptr_t to, int advice) {
  return next_madvise(reinterpret_cast<void*>(from), to - from, advice);
}

// The end of [address, address + bytes) for madvise, which rounds up to pages.
uintptr_t end_of(void* address, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return (reinterpret_cast<uintptr_t>(address) + bytes + page - 1) & ~(page - 1);
}

bool is_aligned(void* address) {
  return (reinterpret_cast<uintptr_t>(address) &
          (static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1)) == 0;
}

int fail(int error) {
  errno = error;
  return -1;
}

// MADV_REMOVE is refused for locked pages and, before Linux 6.7, where one may not write now.
bool zero(void* context, const RegionPart& part) {
  if (advise(part.from, part.to, MADV_REMOVE) == 0) return true;
  void* memory = reinterpret_cast<void*>(part.from);
  const size_t bytes = part.to - part.from;
  const int needed = PROT_READ | PROT_WRITE;
  const bool closed = (part.protection & needed) != needed;
  if (closed && mprotect(memory, bytes, needed) != 0) {
    *static_cast<int*>(context) = errno;
    return false;
  }
  if (advise(part.from, part.to, MADV_REMOVE) != 0) memset(memory, 0, bytes);
  if (closed && mprotect(memory, bytes, part.protection) != 0) {
    *static_cast<int*>(context) = errno;
    return false;
  }
  return true;
}

__attribute__((noinline)) int discard(void* address, size_t bytes, int advice) {
  const int saved = errno;
  const int result = next_madvise(address, bytes, advice);
  // ENOMEM: there are holes in the range, and what is around them was discarded.
  if (result != 0 && errno != ENOMEM) return result;
  const int after = result == 0 ? saved : errno;
  int error = 0;
  RegionWalk walk = {reinterpret_cast<uintptr_t>(address), end_of(address, bytes), zero, &error};
  // Not EAGAIN for a process without a descriptor left: allocators repeat the call on that.
  if (bytes != 0 && visit_regions(walk) != 0) error = ENOMEM;
  if (error != 0) return fail(error);
  errno = after;
  return result;
}

struct LazyFree {
  uintptr_t at;  // up to here it is done
  int error;     // ENOMEM does not end it, as in the kernel
};

bool free_before(void* context, const RegionPart& part) {
  auto& work = *static_cast<LazyFree*>(context);
  if (work.at < part.from && advise(work.at, part.from, MADV_FREE) != 0) work.error = errno;
  work.at = part.to;
  return work.error == 0 || work.error == ENOMEM;
}

__attribute__((noinline)) int free_lazily(void* address, size_t bytes) {
  const int saved = errno;
  const int result = next_madvise(address, bytes, MADV_FREE);
  if (result == 0 || errno != EINVAL || !is_aligned(address)) return result;
  const auto from = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = end_of(address, bytes);
  LazyFree work = {from, 0};
  RegionWalk walk = {from, end, free_before, &work};
  if (end <= from || visit_regions(walk) != 0 || work.at == from) return fail(EINVAL);
  // The part behind the last region is left.
  if (work.at < end && (work.error == 0 || work.error == ENOMEM) &&
      advise(work.at, end, MADV_FREE) != 0) {
    work.error = errno;
  }
  if (work.error != 0) return fail(work.error);
  errno = saved;
  return 0;
}

}  // namespace

ROCEMU_EXPORT int madvise(void* address, size_t bytes, int advice) noexcept {
  if (shares_memory()) [[unlikely]] {
    if (advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED)
      return discard(address, bytes, advice);
    if (advice == MADV_FREE) return free_lazily(address, bytes);
  }
  return next_madvise(address, bytes, advice);
}
