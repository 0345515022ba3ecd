#include "emulator/daemon/move_watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <system_error>

#include "base/unique_fd.h"
#include "emulator/daemon/engine/parallel_policy.h"
#include "emulator/daemon/wait_sources.h"

namespace rocemu::daemon {
namespace {

constexpr unsigned kInquireAt = 2;  // looks
constexpr unsigned kMaxPenalty = 4;
// Inquiries that wait themselves keep their thread.
constexpr unsigned kMaxInquiries = 8;
std::atomic<unsigned> inquiries{0};

constexpr unsigned in_looks(std::chrono::milliseconds time) {
  return static_cast<unsigned>(time / MoveWatchdog::kLook);
}

}  // namespace

// WaitInquiry finds out what there is to know of a program before it is killed.
class WaitInquiry {
 public:
  explicit WaitInquiry(const dma::MoveMark& mark)
      : pid_(mark.pid.load(std::memory_order_relaxed)),
        process_(::fcntl(mark.process.load(std::memory_order_relaxed), F_DUPFD_CLOEXEC, 0)) {
    if (pid_ <= 0) return;
    sources_ = userfaultfds_of(pid_);
    accomplices_ = accomplices_of(pid_);
  }

  // The part that can wait, on a thread of its own.
  static void look_for_servers(const std::shared_ptr<WaitInquiry>& inquiry) {
    if (inquiry->pid_ <= 0) return;
    if (inquiries.fetch_add(1) >= kMaxInquiries) {
      inquiries.fetch_sub(1);
      return;
    }
    try {
      std::thread([inquiry] {
        WaitSources found = fuse_connections_of(inquiry->pid_);
        const std::lock_guard lock(inquiry->mutex_);
        inquiry->sources_.fuse_connections.swap(found.fuse_connections);
        inquiries.fetch_sub(1);
      }).detach();
    } catch (const std::system_error&) {
      inquiries.fetch_sub(1);
    }
  }

  pid_t pid() const { return pid_; }
  const Accomplices& accomplices() const { return accomplices_; }
  WaitSources sources() const {
    const std::lock_guard lock(mutex_);
    return sources_;
  }
  bool kill_program() const {
    return process_ && ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0) == 0;
  }

 private:
  pid_t pid_;
  UniqueFd process_;  // the program's pidfd
  Accomplices accomplices_{static_cast<uid_t>(-1), -1};
  mutable std::mutex mutex_;
  WaitSources sources_;
};

// Signals are for other threads.
// Those of the devices' turns, and the control thread.
static_assert(ParallelPolicy::kMaxThreads + 1 <= dma::MoveMarks::kMax);

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
  while (!wake_.wait_for(lock, kLook, [this] { return stopping_; })) {
    ++looks_;
    if (looks_ - last_kill_ > in_looks(kPenalty)) penalty_ = 0;
    for (size_t i = 0; i < calls_.size(); ++i) look(dma::MoveMarks::all()[i], calls_[i]);
  }
}

void MoveWatchdog::look(const dma::MoveMark& mark, Call& call) {
  const uint64_t count = mark.count.load(std::memory_order_acquire);
  if (count != call.count) {
    call = {count, 0, nullptr, 0};
    return;
  }
  const bool under_way = count % 2 == 1;
  if (!under_way || ++call.looks < kInquireAt) return;
  if (!call.inquiry) {
    auto inquiry = std::make_shared<WaitInquiry>(mark);
    // The same call goes on, so what was asked for is what it was about.
    if (mark.count.load(std::memory_order_acquire) != count) return;
    WaitInquiry::look_for_servers(inquiry);
    call.inquiry = std::move(inquiry);
  }
  judge(mark, call);
}

unsigned MoveWatchdog::patience_looks(const std::string& waits_in,
                                      const WaitInquiry& inquiry) const {
  const auto with_penalty = [&](std::chrono::milliseconds time) {
    return std::max(in_looks(time) >> penalty_, kInquireAt);
  };
  if (waits_in == "handle_userfault") return with_penalty(kUserfault);
  const bool waits = !waits_in.empty() && waits_in != "0";
  if (waits && !inquiry.sources().fuse_connections.empty()) return with_penalty(kServer);
  return in_looks(kAnything);
}

void MoveWatchdog::judge(const dma::MoveMark& mark, Call& call) {
  const WaitInquiry& inquiry = *call.inquiry;
  const std::string function = waits_in(mark.thread.load(std::memory_order_relaxed));
  const unsigned patience = patience_looks(function, inquiry);
  if (call.looks < call.killed_at + patience) return;
  if (call.killed_at == 0) {
    spdlog::error(
        "process {}: the NIC has waited for its memory for {} ms ({}), and all programs "
        "with it; {}",
        inquiry.pid(), (call.looks * kLook).count(), function,
        inquiry.kill_program() ? "killed" : "it cannot be killed");
    if (patience < in_looks(kAnything)) penalty_ = std::min(penalty_ + 1, kMaxPenalty);
    last_kill_ = looks_;
  } else {
    const unsigned ended = end(inquiry.sources(), inquiry.accomplices());
    spdlog::error("process {}: the NIC still waits for its memory; {} others that hold it killed",
                  inquiry.pid(), ended);
  }
  call.killed_at = call.looks;
}

}  // namespace rocemu::daemon
