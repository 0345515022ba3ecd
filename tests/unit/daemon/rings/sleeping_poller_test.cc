// Threads that sleep over a ring until the NIC shows more (rocemu_cq_header::sleepers): nobody is
// left asleep, and nobody is woken who did not ask.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/daemon/rings/queue_layout.h"
#include "emulator/daemon/rings/shared_completion_ring.h"
#include "verbs_shim/provider/rings/completion_ring.h"

namespace rocemu::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr long kLongSleepNs = 999'000'000;
constexpr auto kTooLong = std::chrono::milliseconds(900);

struct Cq {
  Cq() {
    SharedMemory shared("test", cq_memory_bytes(kEntries));
    header = reinterpret_cast<rocemu_cq_header*>(shared.data());
    taker.attach(shared.data(), kEntries);
    ring = std::make_unique<SharedCompletionRing>(std::move(shared), kEntries, host);
  }
  void show(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) ring->push({});
    ring->publish();
  }

  static constexpr uint32_t kEntries = 64;
  CompletionHost host{[] { return TimeNs{123}; }};
  rocemu_cq_header* header = nullptr;
  std::unique_ptr<SharedCompletionRing> ring;
  provider::CompletionRing taker;
};

// Takes what there is, and sleeps when there is nothing, until `all` have been taken by whomever.
struct Takers {
  Cq& cq;
  uint64_t all;
  std::mutex lock;
  std::atomic<uint64_t> taken{0};
  std::atomic<int> late{0};  // sleeps that only time has ended, with something to take

  void run() {
    while (taken < all) {
      if (!cq.taker.looks_empty() && take()) continue;
      const auto before = Clock::now();
      const uint64_t taken_before = taken;
      provider::sleep_in(cq.taker.announce_sleeper(), kLongSleepNs);
      const bool slept_long = Clock::now() - before >= kTooLong;
      if (slept_long && taken == taken_before && !cq.taker.looks_empty()) ++late;
    }
  }
  bool take() {
    const std::lock_guard held(lock);
    if (cq.taker.take() == nullptr) return false;
    cq.taker.give_back();
    ++taken;
    return true;
  }
};

}  // namespace

TEST_CASE("no thread sleeps on while there is something to take") {
  constexpr uint64_t kCompletions = 30'000;
  const int threads_count = GENERATE(1, 3);
  Cq cq;
  Takers takers{cq, kCompletions, {}};
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; ++i) threads.emplace_back([&] { takers.run(); });
  for (uint64_t shown = 0; shown < kCompletions; ++shown) {
    cq.show(1);
    // Mostly one at a time, so that the takers are about to sleep whenever there is one.
    while (shown + 1 - takers.taken > shown % 3) std::this_thread::yield();
  }
  while (takers.taken < kCompletions) std::this_thread::yield();
  cq.show(3);  // for those who sleep over the end
  for (std::thread& thread : threads) thread.join();
  CHECK(takers.late == 0);
}

TEST_CASE("as many threads are woken as completions are shown, if they have asked for it") {
  constexpr int kThreads = 3;
  Cq cq;
  std::atomic<int> awake{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      const timespec longest{60, 0};
      ::syscall(SYS_futex, &cq.header->producer, FUTEX_WAIT, 0, &longest, nullptr, 0);
      ++awake;
    });
  // How many sleep shows in how many are moved to another word and back.
  const auto moved = [](uint32_t* from, uint32_t* to) {
    return ::syscall(SYS_futex, from, FUTEX_REQUEUE, 0, 100L, to, 0);
  };
  while (moved(&cq.header->producer, &cq.header->consumer) +
             moved(&cq.header->consumer, &cq.header->producer) !=
         2 * kThreads)
    std::this_thread::yield();

  cq.show(1);
  CHECK(awake == 0);  // nobody asked for it
  cq.header->sleepers = 1;
  cq.show(2);
  CHECK(cq.header->sleepers == 1);  // there may be more of them
  while (awake != 2) std::this_thread::yield();
  cq.show(2);
  CHECK(cq.header->sleepers == 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(awake == kThreads);
}

}  // namespace rocemu::daemon
