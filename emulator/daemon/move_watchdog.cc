#include "emulator/daemon/move_watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu::daemon {
namespace {

void end_program(const dma::MoveMark& mark) {
  const pid_t pid = mark.pid.load(std::memory_order_relaxed);
  const int process = mark.process.load(std::memory_order_relaxed);
  if (process >= 0 && ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0) == 0) {
    spdlog::error(
        "process {}: the NIC has waited for its memory for {} ms, and all programs with it; ended",
        pid, MoveWatchdog::kLimit.count());
  } else {
    spdlog::error(
        "process {}: the NIC waits for its memory, and all programs with it; it can't be ended",
        pid);
  }
}

}  // namespace

// Signals are for other threads.
MoveWatchdog::MoveWatchdog() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MoveWatchdog::~MoveWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MoveWatchdog::run() {
  ::pthread_setname_np(::pthread_self(), "move-watchdog");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stopping_; })) look();
}

void MoveWatchdog::look() {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const dma::MoveMark& mark = dma::MoveMarks::all()[i];
    Seen& seen = seen_[i];
    const uint64_t count = mark.count.load(std::memory_order_acquire);
    if (count % 2 == 0 || count != seen.count) {
      seen = {count, 0};
    } else if (++seen.looks == kLooks) {
      end_program(mark);
    }
  }
}

}  // namespace rocemu::daemon
