// Address ranges, of which it is asked at each free(3) whether it meets one. Thread-safe. Nothing
// here allocates by malloc or calls what stands in interpose.cc.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace rocemu::memory_watch {

class Ranges {
 public:
  void add(uintptr_t from, uintptr_t to);
  void remove(uintptr_t from, uintptr_t to);

  // Does [from, to) meet a range? What is empty meets none.
  bool meets(uintptr_t from, uintptr_t to) {
    return from < to && from < high_.load(std::memory_order_relaxed) &&
           to > low_.load(std::memory_order_relaxed) && search(from, to);
  }
  // The same, when only the beginning is known yet: false is sure.
  bool may_meet(uintptr_t from) const { return from < high_.load(std::memory_order_relaxed); }

  // In the child after fork(2): nobody gives the lock back, a thread of the parent may have been in
  // the middle of a change, and the ranges are of the parent's requests. Forgets all of them.
  void after_fork();

 private:
  struct Range {
    uintptr_t from;
    uintptr_t to;
    uintptr_t reach;  // the largest `to` up to here
  };

  bool search(uintptr_t from, uintptr_t to);
  // The index of the first range that begins at `from` or later.
  size_t first_from(uintptr_t from) const;
  bool make_room();
  void on_change(size_t from_index);

  pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
  Range* ranges_ = nullptr;  // by `from`
  size_t count_ = 0;
  size_t room_ = 0;
  // The bounds of all ranges together; [UINTPTR_MAX, 0) when there is none.
  std::atomic<uintptr_t> low_{UINTPTR_MAX};
  std::atomic<uintptr_t> high_{0};
};

}  // namespace rocemu::memory_watch
