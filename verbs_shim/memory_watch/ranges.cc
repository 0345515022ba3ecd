#include "verbs_shim/memory_watch/ranges.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu::memory_watch {
namespace {

constexpr size_t kFirstRoomBytes = 65536;

// The system calls themselves: munmap and mremap of this library would come here again.
void* map(size_t bytes) {
  const long address =
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == -1 ? nullptr : reinterpret_cast<void*>(address);
}

}  // namespace

size_t Ranges::first_from(uintptr_t from) const {
  size_t low = 0;
  size_t high = count_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges_[middle].from < from) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// All ranges before the first one that begins at `to` or later begin before `to`: one of them meets
// [from, to) if any of them ends after `from`.
bool Ranges::search(uintptr_t from, uintptr_t to) {
  pthread_rwlock_rdlock(&lock_);
  const size_t end = first_from(to);
  const bool found = end > 0 && ranges_[end - 1].reach > from;
  pthread_rwlock_unlock(&lock_);
  return found;
}

bool Ranges::make_room() {
  if (count_ < room_) return true;
  const size_t bytes = room_ == 0 ? kFirstRoomBytes : 2 * room_ * sizeof(Range);
  auto* larger = static_cast<Range*>(map(bytes));
  if (larger == nullptr) return false;
  if (ranges_ != nullptr) {
    memcpy(larger, ranges_, count_ * sizeof(Range));
    syscall(SYS_munmap, ranges_, room_ * sizeof(Range));
  }
  ranges_ = larger;
  room_ = bytes / sizeof(Range);
  return true;
}

void Ranges::on_change(size_t from_index) {
  for (size_t i = from_index; i < count_; ++i) {
    const uintptr_t before = i == 0 ? 0 : ranges_[i - 1].reach;
    ranges_[i].reach = ranges_[i].to > before ? ranges_[i].to : before;
  }
  low_.store(count_ == 0 ? UINTPTR_MAX : ranges_[0].from, std::memory_order_relaxed);
  high_.store(count_ == 0 ? 0 : ranges_[count_ - 1].reach, std::memory_order_relaxed);
}

void Ranges::add(uintptr_t from, uintptr_t to) {
  if (to <= from) return;
  pthread_rwlock_wrlock(&lock_);
  if (make_room()) {
    const size_t at = first_from(from);
    memmove(ranges_ + at + 1, ranges_ + at, (count_ - at) * sizeof(Range));
    ranges_[at] = {from, to, to};
    ++count_;
    on_change(at);
  }
  pthread_rwlock_unlock(&lock_);
}

void Ranges::remove(uintptr_t from, uintptr_t to) {
  pthread_rwlock_wrlock(&lock_);
  for (size_t at = first_from(from); at < count_ && ranges_[at].from == from; ++at) {
    if (ranges_[at].to != to) continue;
    --count_;
    memmove(ranges_ + at, ranges_ + at + 1, (count_ - at) * sizeof(Range));
    on_change(at);
    break;
  }
  pthread_rwlock_unlock(&lock_);
}

void Ranges::after_fork() {
  pthread_rwlock_init(&lock_, nullptr);
  ranges_ = nullptr;
  count_ = room_ = 0;
  on_change(0);
}

}  // namespace rocemu::memory_watch
