#include "emulator/daemon/engine/turn_workers.h"

#include <sched.h>

#include <bit>

#include "base/cpu_relax.h"
#include "emulator/daemon/engine/engine_clock.h"
#include "emulator/daemon/engine/engine_thread.h"

namespace rocemu::daemon {
namespace {

constexpr unsigned kLooksPerYield = 64;
constexpr TimeNs kSleepAfterNs = 200'000;

// Takes a job by clearing its bit. False when another thread was faster.
bool take(std::atomic<uint64_t>& jobs, uint64_t bit) {
  return (jobs.fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
}

}  // namespace

TurnWorkers::TurnWorkers(unsigned threads) : TurnWorkers() {
  for (unsigned i = 0; i < threads; ++i)
    threads_.push_back(start_engine_thread([this] { work(); }));
}

TurnWorkers::~TurnWorkers() {
  stopping_.store(true);
  wake_all();
  for (std::thread& thread : threads_) thread.join();
}

unsigned TurnWorkers::run(uint64_t jobs, const std::function<void(unsigned)>& job,
                          const std::function<void()>& meanwhile) {
  job_ = &job;
  done_.store(0, std::memory_order_relaxed);
  to_begin_.store(jobs);
  if (sleepers_.load() != 0) wake_all();
  auto by_workers = static_cast<unsigned>(std::popcount(jobs));
  while (const uint64_t left = to_begin_.load(std::memory_order_relaxed)) {
    const uint64_t lowest = left & -left;
    if (!take(to_begin_, lowest)) continue;
    job(static_cast<unsigned>(std::countr_zero(lowest)));
    --by_workers;
  }
  meanwhile();
  for (unsigned looks = 1; done_.load(std::memory_order_acquire) != by_workers; ++looks) {
    cpu_relax();
    // The worker may be waiting for this CPU.
    if (looks % kLooksPerYield == 0) ::sched_yield();
  }
  return by_workers;
}

void TurnWorkers::work() {
  const EngineThread thread("engine-worker");
  sleep();
  TimeNs idle_since = monotonic_now_ns();
  for (unsigned looks = 1; !stopping_.load(std::memory_order_relaxed); ++looks) {
    const uint64_t left = to_begin_.load(std::memory_order_relaxed);
    if (left != 0) {
      const uint64_t highest = std::bit_floor(left);
      if (!take(to_begin_, highest)) continue;
      (*job_)(static_cast<unsigned>(std::countr_zero(highest)));
      done_.fetch_add(1, std::memory_order_release);
      idle_since = monotonic_now_ns();
      continue;
    }
    cpu_relax();
    if (looks % kLooksPerYield != 0) continue;
    ::sched_yield();
    if (monotonic_now_ns() - idle_since < kSleepAfterNs) continue;
    sleep();
    idle_since = monotonic_now_ns();
  }
}

// The worker shows that it sleeps and then looks once more for jobs; run() sets jobs first and then
// looks for sleepers, so that one of the two sees the other.
void TurnWorkers::sleep() {
  const uint32_t wake_ups = wake_ups_.load();
  sleepers_.fetch_add(1);
  if (to_begin_.load() == 0 && !stopping_.load()) wake_ups_.wait(wake_ups);
  sleepers_.fetch_sub(1);
}

void TurnWorkers::wake_all() {
  wake_ups_.fetch_add(1);
  wake_ups_.notify_all();
}

}  // namespace rocemu::daemon
