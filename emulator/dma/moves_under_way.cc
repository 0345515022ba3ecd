#include "emulator/dma/moves_under_way.h"

namespace rocemu::dma {

std::array<MoveMark, MoveMarks::kMax>& MoveMarks::all() noexcept {
  static std::array<MoveMark, kMax> marks;
  return marks;
}

MoveMark& MoveMarks::of_this_thread() noexcept {
  static std::atomic<unsigned> threads{0};
  thread_local MoveMark& mark = all()[threads.fetch_add(1) % kMax];
  return mark;
}

}  // namespace rocemu::dma
