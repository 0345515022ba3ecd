// Ends programs whose memory makes the NIC wait.
//
// A move of the engine's waits for the page faults of the program's memory. Where those are
// answered by another program (userfaultfd(2), a file of a FUSE server), that may be never, and no
// signal interrupts the wait: all programs' traffic would stand still with it. So a program in
// whose memory one and the same system call has been under way for kLimit is killed: its
// userfaultfd goes with it, which ends the wait. Memory of an honest program takes so long only
// where a disk or network file system hangs.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "emulator/dma/moves_under_way.h"

namespace rocemu::daemon {

class MoveWatchdog {
 public:
  static constexpr std::chrono::milliseconds kLook{250};
  static constexpr unsigned kLooks =
      8;  // kLimit, in looks; time in which nothing runs is not counted
  static constexpr std::chrono::milliseconds kLimit = kLook * kLooks;

  MoveWatchdog();  // throws std::system_error
  ~MoveWatchdog();
  MoveWatchdog(const MoveWatchdog&) = delete;
  MoveWatchdog& operator=(const MoveWatchdog&) = delete;

 private:
  struct Seen {
    uint64_t count = 0;
    unsigned looks = 0;  // in which the same call was under way
  };

  void run();
  void look();

  std::array<Seen, dma::MoveMarks::kMax> seen_{};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocemu::daemon
