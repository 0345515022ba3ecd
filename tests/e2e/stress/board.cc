#include "tests/e2e/stress/board.h"

#include <sys/mman.h>

#include <new>

#include "tests/e2e/tools/failure.h"

namespace rocemu::e2e {

Board* Board::make(uint32_t processes) {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_errno(errno, "mmap");
  auto* board = new (memory) Board{};
  pthread_barrierattr_t attributes;
  must(pthread_barrierattr_init(&attributes), "pthread_barrierattr_init");
  must(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED),
       "pthread_barrierattr_setpshared");
  must(pthread_barrier_init(&board->barrier, &attributes, processes), "pthread_barrier_init");
  return board;
}

uint32_t end_count(const StressOptions& options) { return 2 * options.processes * options.qps; }

// A process's connections lead to all others in turn, beginning with the next one.
EndPlace end_place(const StressOptions& options, uint32_t index) {
  const uint32_t connection = index / 2;
  const uint32_t from = connection / options.qps;
  if (index % 2 == 0 || options.processes == 1) return {index, from};
  const uint32_t step = 1 + connection % options.qps % (options.processes - 1);
  return {index, (from + step) % options.processes};
}

}  // namespace rocemu::e2e
