#include "base/reaper/reaper.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace rocemu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{20};

// A descriptor, or a mapping.
struct Remains {
  int fd = -1;
  void* address = nullptr;
  size_t bytes = 0;
  void (*then)(size_t) = nullptr;
};

void dispose(const Remains& remains) {
  if (remains.fd < 0) {
    ::munmap(remains.address, remains.bytes);
    if (remains.then != nullptr) remains.then(remains.bytes);
    return;
  }
  // Most that linger do not, after this. Not a socket: it fails, and nothing is lost.
  const linger off{};
  ::setsockopt(remains.fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
  ::close(remains.fd);
}

class Reaper {
 public:
  void add(const Remains& remains) {
    const std::lock_guard lock(mutex_);
    if (threads_ == 0) start_thread();
    waiting_.push_back(remains);
    wake_.notify_one();
  }

 private:
  // Detached: the process ends whatever they wait for. Signals are for others.
  void start_thread() {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
    ::pthread_setname_np(::pthread_self(), "reaper");
    std::unique_lock lock(mutex_);
    for (unsigned turn = 0;;) {
      if (waiting_.empty() && standing_by_ > 0) break;  // enough are left
      if (waiting_.empty()) {
        stand_by(lock, Clock::time_point::max());
      } else if (turn_ != 0 && Clock::now() < turn_began_ + kPatience) {
        stand_by(lock, turn_began_ + kPatience);
      } else {
        turn = turn_ = ++last_turn_;
        turn_began_ = Clock::now();
        take_one(lock);
        if (turn_ == turn) turn_ = 0;
      }
    }
    --threads_;
  }

  void stand_by(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
    ++standing_by_;
    if (until == Clock::time_point::max()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, until);
    }
    --standing_by_;
  }

  void take_one(std::unique_lock<std::mutex>& lock) {
    const Remains remains = waiting_.front();
    waiting_.pop_front();
    if (standing_by_ > 0) {
      wake_.notify_one();  // it looks whether this takes too long
    } else if (threads_ < kMaxReaperThreads) {
      try {
        start_thread();
      } catch (const std::exception&) {  // then nobody takes over
      }
    }
    lock.unlock();
    dispose(remains);
    lock.lock();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Remains> waiting_;
  unsigned threads_ = 0;
  unsigned standing_by_ = 0;
  unsigned turn_ = 0;  // number of the turn that closes now; 0: none does
  unsigned last_turn_ = 0;
  Clock::time_point turn_began_{};
};

// Never destroyed, since threads of it may be in a close at the end of the process.
Reaper& reaper() {
  static Reaper& the_one = *new Reaper;
  return the_one;
}

void reap(const Remains& remains) noexcept {
  try {
    reaper().add(remains);
  } catch (const std::exception&) {
    dispose(remains);
  }
}

}  // namespace

void close_elsewhere(UniqueFd fd) noexcept {
  if (fd) reap({.fd = fd.release()});
}

void unmap_elsewhere(void* address, size_t bytes, void (*then)(size_t)) noexcept {
  reap({.address = address, .bytes = bytes, .then = then});
}

}  // namespace rocemu
