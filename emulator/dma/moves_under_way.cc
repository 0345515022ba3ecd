#include "emulator/dma/moves_under_way.h"

#include <unistd.h>

namespace rocemu::dma {

std::array<MoveMark, MoveMarks::kMax>& MoveMarks::all() noexcept {
  static std::array<MoveMark, kMax> marks;
  return marks;
}

MoveMark& MoveMarks::of_this_thread() noexcept {
  static std::atomic<unsigned> threads{0};
  thread_local MoveMark& mark = [&]() -> MoveMark& {
    MoveMark& next = all()[threads.fetch_add(1) % kMax];
    next.thread.store(::gettid(), std::memory_order_relaxed);
    return next;
  }();
  return mark;
}

}  // namespace rocemu::dma
