// TurnWorkers are threads that take part in the engine's turns (parallel_turns.h). Between calls of
// run() they touch nothing: their jobs' data belongs to the engine before and after. They sleep
// when nothing has come for a while, and the caller does each job that none of them has begun, so
// that a thread without a CPU costs little.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace rocemu::daemon {

class TurnWorkers {
 public:
  static constexpr unsigned kMaxJobs = 64;
  static constexpr unsigned kMaxWorkers = 64;

  // At most kMaxWorkers. Throws std::system_error.
  explicit TurnWorkers(unsigned threads);
  ~TurnWorkers();
  TurnWorkers(const TurnWorkers&) = delete;
  TurnWorkers& operator=(const TurnWorkers&) = delete;

  // Calls job(n) once for each bit n that is set in `jobs`, on this thread and the first `workers`
  // workers, and `meanwhile` on this one when no job is left to begin. All have returned when this
  // returns. A job mostly goes to the thread that had it the last time. Returns how many jobs
  // workers did.
  unsigned run(uint64_t jobs, unsigned workers, const std::function<void(unsigned)>& job,
               const std::function<void()>& meanwhile);

 private:
  struct alignas(64) Worker {
    std::thread thread;
    std::atomic<uint32_t> wake_ups{0};  // counts up
  };

  void work(unsigned index);
  void sleep(unsigned index);
  void wake(uint64_t workers);
  void stop();

  const std::function<void(unsigned)>* job_ = nullptr;  // the one of the run() under way
  alignas(64) std::atomic<uint64_t> to_begin_{0};
  std::atomic<unsigned> invited_{0};           // so many workers take part in the run() under way
  alignas(64) std::atomic<unsigned> done_{0};  // by workers, in the run() under way
  alignas(64) std::atomic<uint64_t> sleepers_{0};  // a bit for each that sleeps or is about to
  std::atomic<bool> stopping_{false};
  std::vector<Worker> workers_;
};

}  // namespace rocemu::daemon
