// The engine thread and those that help it have the same start: what they ask the system for, and
// which signals they take.
#pragma once

#include <functional>
#include <thread>

namespace rocemu::daemon {

// EngineThread is made by a thread at its start and lives as long as that runs. It makes
// the thread's timers exact and registers it with DPDK. What the system does not
// grant is done without.
class EngineThread {
 public:
  // `name` has at most 15 characters, as pthread_setname_np(3) wants.
  explicit EngineThread(const char* name);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

 private:
  bool registered_;  // with DPDK, which wants to be told of the end, too
};

// Starts a thread that no signal reaches but SIGBUS, which an access of its own may raise
// (dma/guarded_access.h). All others go to the control thread.
std::thread start_engine_thread(std::function<void()> main);

}  // namespace rocemu::daemon
