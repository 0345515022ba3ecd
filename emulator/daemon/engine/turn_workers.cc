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

// The bits of the first `count` of at most 64.
uint64_t first_bits(unsigned count) {
  return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
}

// The bit that a thread is to try next: each of so many threads begins with another one, mostly the
// same every time, and goes on with its neighbours. Devices that are neighbours often talk to each
// other, and find their frames in that CPU's cache.
uint64_t choice_of(unsigned thread, unsigned threads, uint64_t jobs) {
  const auto left = static_cast<unsigned>(std::popcount(jobs));
  for (unsigned skip = thread * left / threads; skip != 0; --skip) jobs &= jobs - 1;
  return jobs & -jobs;
}

// Takes a job by clearing its bit. False when another thread was faster.
bool take(std::atomic<uint64_t>& jobs, uint64_t bit) {
  return (jobs.fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
}

}  // namespace

TurnWorkers::TurnWorkers(unsigned threads) : workers_(threads) {
  try {
    for (unsigned i = 0; i < threads; ++i)
      workers_[i].thread = start_engine_thread([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

TurnWorkers::~TurnWorkers() { stop(); }

void TurnWorkers::stop() {
  stopping_.store(true);
  wake(first_bits(static_cast<unsigned>(workers_.size())));
  for (Worker& worker : workers_)
    if (worker.thread.joinable()) worker.thread.join();
}

unsigned TurnWorkers::run(uint64_t jobs, unsigned workers, const std::function<void(unsigned)>& job,
                          const std::function<void()>& meanwhile) {
  job_ = &job;
  done_.store(0, std::memory_order_relaxed);
  invited_.store(workers);
  to_begin_.store(jobs);
  if (const uint64_t asleep = sleepers_.load() & first_bits(workers)) wake(asleep);
  auto by_workers = static_cast<unsigned>(std::popcount(jobs));
  while (const uint64_t left = to_begin_.load(std::memory_order_relaxed)) {
    const uint64_t choice = choice_of(0, workers + 1, left);
    if (!take(to_begin_, choice)) continue;
    job(static_cast<unsigned>(std::countr_zero(choice)));
    --by_workers;
  }
  meanwhile();
  for (unsigned looks = 1; done_.load(std::memory_order_acquire) != by_workers; ++looks) {
    cpu_relax();
    // A worker may be waiting for this CPU.
    if (looks % kLooksPerYield == 0) ::sched_yield();
  }
  return by_workers;
}

void TurnWorkers::work(unsigned index) {
  const EngineThread thread("engine-worker");
  sleep(index);
  TimeNs idle_since = monotonic_now_ns();
  for (unsigned looks = 1; !stopping_.load(std::memory_order_relaxed); ++looks) {
    const uint64_t left = to_begin_.load(std::memory_order_relaxed);
    const unsigned invited = invited_.load(std::memory_order_relaxed);
    if (left != 0 && index < invited) {
      const uint64_t choice = choice_of(index + 1, invited + 1, left);
      if (!take(to_begin_, choice)) continue;
      (*job_)(static_cast<unsigned>(std::countr_zero(choice)));
      done_.fetch_add(1, std::memory_order_release);
      idle_since = monotonic_now_ns();
      continue;
    }
    cpu_relax();
    if (looks % kLooksPerYield != 0) continue;
    ::sched_yield();
    if (monotonic_now_ns() - idle_since < kSleepAfterNs) continue;
    sleep(index);
    idle_since = monotonic_now_ns();
  }
}

// The worker shows that it sleeps and then looks once more for jobs; run() sets jobs first and then
// looks for sleepers, so that one of the two sees the other.
void TurnWorkers::sleep(unsigned index) {
  std::atomic<uint32_t>& wake_ups = workers_[index].wake_ups;
  const uint32_t before = wake_ups.load();
  const uint64_t bit = uint64_t{1} << index;
  sleepers_.fetch_or(bit);
  const bool has_work = to_begin_.load() != 0 && index < invited_.load();
  if (!has_work && !stopping_.load()) wake_ups.wait(before);
  sleepers_.fetch_and(~bit);
}

void TurnWorkers::wake(uint64_t workers) {
  for (; workers != 0; workers &= workers - 1) {
    std::atomic<uint32_t>& wake_ups =
        workers_[static_cast<size_t>(std::countr_zero(workers))].wake_ups;
    wake_ups.fetch_add(1);
    wake_ups.notify_one();
  }
}

}  // namespace rocemu::daemon
