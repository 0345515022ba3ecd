#include "verbs_shim/checker/memory/readable_pages.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "verbs_shim/checker/memory/watched_memory.h"

namespace rocemu::check {
namespace {

constexpr uintptr_t kSmallestPage = 4096;
constexpr uint64_t kFirstBelievedNs = 50'000;
constexpr uint64_t kMostBelievedNs = 1'600'000;

std::atomic<uint64_t> generation = 1;

struct KnownPage {
  uintptr_t page = 0;
  uint64_t generation = 0;
  uint64_t until_ns = 0;
  uint64_t believed_ns = 0;
};
constexpr size_t kKnownPages = 256;  // that each thread remembers
thread_local std::array<KnownPage, kKnownPages> known_pages;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The cheapest call that reads a word for the kernel before it sees that it has nothing to do is
// rt_sigprocmask of a kind that there is not.
bool can_read(uintptr_t page) {
  const int errno_before = errno;
  syscall(SYS_rt_sigprocmask, ~0, page, nullptr, 8);
  const bool readable = errno == EINVAL;
  errno = errno_before;
  return readable;
}

bool is_readable(uintptr_t page, uint64_t now) {
  KnownPage& known = known_pages[page / kSmallestPage % kKnownPages];
  // Read before the page is asked for: what goes afterwards has another number.
  const uint64_t current = generation.load(std::memory_order_acquire);
  const bool is_known = known.page == page && known.generation == current;
  if (is_known && now < known.until_ns) return true;
  if (!can_read(page)) return false;
  const uint64_t believed_ns =
      is_known ? std::min(known.believed_ns * 2, kMostBelievedNs) : kFirstBelievedNs;
  known = {page, current, now + believed_ns, believed_ns};
  return true;
}

}  // namespace

bool is_readable(const Span& span) {
  const uint64_t now = is_all_memory_watched() ? now_ns() : UINT64_MAX;
  const uintptr_t last = span.to() - 1;
  for (uintptr_t page = span.from & ~(kSmallestPage - 1); page <= last; page += kSmallestPage) {
    if (!is_readable(page, now)) return false;
    if (page > UINTPTR_MAX - kSmallestPage) break;
  }
  return true;
}

void forget_readable_pages() { generation.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace rocemu::check
