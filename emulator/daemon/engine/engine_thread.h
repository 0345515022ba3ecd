// What the engine thread and those that help it have in common: what they ask the system for when
// they start, and which signals they take.
#pragma once

#include <functional>
#include <thread>

namespace rocemu::daemon {

// Made by a thread, for as long as it runs.
class EngineThread {
 public:
  // `name` has at most 15 characters. What is not granted is done without.
  explicit EngineThread(const char* name);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

 private:
  bool registered_;  // with DPDK
};

// A thread that no signal reaches, but what an access of its own may give (dma/guarded_access.h).
// The others are the control thread's.
std::thread start_engine_thread(std::function<void()> main);

}  // namespace rocemu::daemon
