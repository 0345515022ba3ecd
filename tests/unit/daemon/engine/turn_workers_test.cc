#include "emulator/daemon/engine/turn_workers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace rocemu::daemon {
namespace {

constexpr std::chrono::milliseconds kLongEnoughToSleep{5};

}  // namespace

TEST_CASE("each job is done once, and all are when run() returns") {
  const unsigned threads = GENERATE(0u, 1u, 3u);
  TurnWorkers workers(threads);
  uint64_t random = 88172645463325252;
  std::array<unsigned, TurnWorkers::kMaxJobs> done;  // plain: run() orders all of it
  for (unsigned round = 0; round < 5000; ++round) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const uint64_t jobs = random & (random >> 11);
    done.fill(0);
    bool meanwhile = false;
    const unsigned invited = round % (threads + 1);
    const unsigned by_workers = workers.run(
        jobs, invited, [&](unsigned job) { ++done[job]; }, [&] { meanwhile = true; });
    REQUIRE(meanwhile);
    REQUIRE(by_workers <= static_cast<unsigned>(std::popcount(jobs)));
    if (threads == 0) REQUIRE(by_workers == 0);
    for (unsigned job = 0; job < done.size(); ++job) REQUIRE(done[job] == (jobs >> job & 1));
  }
}

TEST_CASE("threads begin with different jobs, the caller with the lowest") {
  TurnWorkers workers(1);
  std::array<std::thread::id, 2> by;
  std::atomic<unsigned> begun{0};
  const unsigned by_workers = workers.run(
      0b11, 1,
      [&](unsigned job) {
        by[job] = std::this_thread::get_id();
        ++begun;
        while (begun < 2) std::this_thread::yield();  // whoever is first is not to do both
      },
      [] {});
  CHECK(by_workers == 1);
  CHECK(by[0] == std::this_thread::get_id());
  CHECK(by[1] != std::this_thread::get_id());
}

TEST_CASE("workers that sleep are woken") {
  TurnWorkers workers(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(kLongEnoughToSleep);
    std::atomic<unsigned> inside{0};
    // Ends only when all three threads are in it.
    workers.run(
        0b111, 2,
        [&](unsigned) {
          ++inside;
          while (inside < 3) std::this_thread::yield();
        },
        [] {});
    CHECK(inside == 3);
  }
}

TEST_CASE("workers that are not invited take no job") {
  TurnWorkers workers(3);
  std::mutex mutex;
  std::map<std::thread::id, unsigned> jobs_by;
  const auto run = [&](unsigned invited) {
    workers.run(
        0xffff, invited,
        [&](unsigned) {
          const std::lock_guard lock(mutex);
          ++jobs_by[std::this_thread::get_id()];
        },
        [] {});
  };
  for (int round = 0; round < 100; ++round) run(3);
  jobs_by.clear();
  for (int round = 0; round < 2000; ++round) run(1);
  std::vector<unsigned> jobs;
  for (const auto& [thread, count] : jobs_by) jobs.push_back(count);
  std::ranges::sort(jobs, std::greater<>());
  // Each of the others may have looked at how many are invited before that changed.
  for (size_t i = 2; i < jobs.size(); ++i) CHECK(jobs[i] <= 1);
}

TEST_CASE("workers that sleep, and those that do not yet, end with their owner") {
  for (int i = 0; i < 50; ++i) {
    TurnWorkers workers(3);
    if (i % 2 != 0)
      workers.run(
          0b11, 3, [](unsigned) {}, [] {});
    if (i % 10 == 0) std::this_thread::sleep_for(kLongEnoughToSleep);
  }
}

}  // namespace rocemu::daemon
