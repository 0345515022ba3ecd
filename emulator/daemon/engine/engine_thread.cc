#include "emulator/daemon/engine/engine_thread.h"

#include <pthread.h>
#include <rte_lcore.h>
#include <signal.h>
#include <sys/prctl.h>

#include <utility>

namespace rocemu::daemon {
namespace {

constexpr unsigned long kTimerSlackNs = 1000;  // a sleep may end later by this

// OnlyFaults blocks all signals but SIGBUS on the calling thread for as long as it lives.
class OnlyFaults {
 public:
  OnlyFaults() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    ::sigdelset(&blocked, SIGBUS);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~OnlyFaults() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  OnlyFaults(const OnlyFaults&) = delete;
  OnlyFaults& operator=(const OnlyFaults&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// The registration gives the thread a place in DPDK's caches of free frames, which are kept by
// thread: without one, each allocation goes to the shared part of the pool.
EngineThread::EngineThread(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
  registered_ = ::rte_thread_register() == 0;
}

EngineThread::~EngineThread() {
  if (registered_) ::rte_thread_unregister();
}

std::thread start_engine_thread(std::function<void()> main) {
  const OnlyFaults mask;  // the new thread inherits it
  return std::thread(std::move(main));
}

}  // namespace rocemu::daemon
