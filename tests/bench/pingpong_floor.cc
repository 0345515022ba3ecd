// pingpong_floor: a message there and back between two programs through a third process over shared
// memory, with the waiting of the real NIC (IdlePolicy) and of its provider (PollPacer) and nothing
// else. That is what latency is measured against.
//
//   pingpong_floor [--never-yield] [--seconds S]
//
// --never-yield: the programs poll without a pause, as one does that polls its own memory.
// Prints the median and the 99th percentile of half a round trip, in microseconds.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

#include "base/cpu_relax.h"
#include "emulator/daemon/engine/pace/idle_policy.h"
#include "emulator/daemon/rings/completion_host.h"
#include "tests/bench/arguments.h"
#include "verbs_shim/provider/rings/poll_pacer.h"

namespace {

using rocemu::daemon::CompletionHost;
using rocemu::daemon::IdlePolicy;
using rocemu::provider::PollPacer;

// One message in flight, as a queue of one.
struct alignas(64) Slot {
  std::atomic<uint32_t> count{0};
  char message[32] = {};
  std::atomic<uint32_t> poller_core{0};  // where it was last found empty
};

struct Shared {
  Slot posted[2];     // program → NIC
  Slot delivered[2];  // NIC → program
  alignas(64) std::atomic<uint32_t> sleeping{0};
  std::atomic<uint32_t> nic_core{0};
};

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

class Program {
 public:
  Program(Shared& shared, int index, int wake_fd, bool yields)
      : shared_(shared), index_(index), wake_fd_(wake_fd), yields_(yields) {}

  void post() {
    Slot& slot = shared_.posted[index_];
    slot.count.store(++posted_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (shared_.sleeping.load(std::memory_order_relaxed) == 0) return;
    const uint64_t one = 1;
    if (::write(wake_fd_, &one, sizeof one) < 0) ::_exit(1);
  }

  void wait() {
    Slot& slot = shared_.delivered[index_];
    while (slot.count.load(std::memory_order_acquire) == delivered_) {
      if (!yields_) continue;
      const auto core = static_cast<uint32_t>(::sched_getcpu()) + 1;
      if (slot.poller_core.load(std::memory_order_relaxed) != core)
        slot.poller_core.store(core, std::memory_order_relaxed);
      const bool nic_here = shared_.nic_core.load(std::memory_order_relaxed) == core;
      if (pacer_.on_empty({.here = nic_here}, now_ns) == PollPacer::Advice::kGoOn) continue;
      ::sched_yield();
      pacer_.on_yield({}, now_ns());
    }
    ++delivered_;
    pacer_.on_completion();
  }

 private:
  Shared& shared_;
  int index_;
  int wake_fd_;
  bool yields_;
  PollPacer pacer_;
  uint32_t posted_ = 0, delivered_ = 0;
};

[[noreturn]] void run_nic(Shared& shared, int wake_fd) {
  ::prctl(PR_SET_TIMERSLACK, 1000);
  IdlePolicy policy;
  CompletionHost host;
  uint32_t taken[2] = {0, 0};
  const auto pending = [&](int i) {
    return shared.posted[i].count.load(std::memory_order_acquire) != taken[i];
  };
  for (;;) {
    const auto core = static_cast<uint32_t>(::sched_getcpu()) + 1;
    if (host.move_to(core)) shared.nic_core.store(core, std::memory_order_relaxed);
    bool busy = false;
    for (int i = 0; i < 2; ++i) {
      if (!pending(i)) continue;
      ++taken[i];
      Slot& target = shared.delivered[1 - i];
      std::memcpy(target.message, shared.posted[i].message, sizeof target.message);
      target.count.store(target.count.load(std::memory_order_relaxed) + 1,
                         std::memory_order_release);
      host.on_answer_for(target.poller_core.load(std::memory_order_relaxed));
      busy = true;
    }
    if (busy) {
      policy.on_work(now_ns());
      continue;
    }
    switch (policy.on_empty_turn(now_ns(), host.take_program_waits())) {
      case IdlePolicy::Action::poll:
        rocemu::cpu_relax();
        break;
      case IdlePolicy::Action::yield: {
        const uint64_t before = now_ns();
        ::sched_yield();
        policy.on_yield(before, now_ns());
        break;
      }
      case IdlePolicy::Action::sleep: {
        shared.sleeping.store(1, std::memory_order_seq_cst);
        if (!pending(0) && !pending(1)) {
          pollfd wake{wake_fd, POLLIN, 0};
          ::poll(&wake, 1, 100);
          uint64_t count = 0;
          if (::read(wake_fd, &count, sizeof count) < 0 && errno != EAGAIN) ::_exit(1);
        }
        shared.sleeping.store(0, std::memory_order_release);
        policy.on_wake_up(false);
        break;
      }
    }
  }
}

class Child {
 public:
  template <class Run>
  explicit Child(Run run) : pid_(::fork()) {
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

}  // namespace

int main(int argc, char** argv) try {
  bool never_yield = false;
  double seconds = 1;
  rocemu::bench::Arguments arguments("A ping-pong between two programs through a third process");
  arguments.flag("--never-yield", never_yield, "Programs poll without a pause");
  arguments.seconds(seconds);
  if (const auto code = arguments.parse(argc, argv)) return *code;

  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (memory == MAP_FAILED || wake_fd < 0)
    throw std::system_error(errno, std::generic_category(), "shared memory");
  Shared& shared = *new (memory) Shared;

  const Child nic([&] { run_nic(shared, wake_fd); });
  const Child echo([&] {
    Program program(shared, 1, wake_fd, !never_yield);
    for (;;) {
      program.wait();
      program.post();
    }
  });

  Program program(shared, 0, wake_fd, !never_yield);
  const uint64_t start = now_ns();
  const uint64_t warm = start + static_cast<uint64_t>(seconds * 1e8);
  const uint64_t end = start + static_cast<uint64_t>(seconds * 1.1e9);
  std::vector<uint64_t> round_trips_ns;
  for (uint64_t before = start; before < end;) {
    program.post();
    program.wait();
    const uint64_t after = now_ns();
    if (before >= warm) round_trips_ns.push_back(after - before);
    before = after;
  }
  if (round_trips_ns.empty()) throw std::runtime_error("no round trip within that time");
  std::sort(round_trips_ns.begin(), round_trips_ns.end());
  const auto half_us = [&](double share) {
    const auto index = static_cast<size_t>(share * static_cast<double>(round_trips_ns.size() - 1));
    return static_cast<double>(round_trips_ns[index]) / 2000;
  };
  std::printf("%.3f %.3f\n", half_us(0.5), half_us(0.99));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "pingpong_floor: %s\n", error.what());
  return 1;
}
