// MoveMarks say which threads are in a system call that moves a program's memory, for a watchdog:
// such a call waits for page faults, and whoever answers those of userfaultfd(2) or FUSE may never
// do so.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace rocemu::dma {

struct MoveMark {
  std::atomic<uint64_t> count{0};  // beginnings and ends: odd during a call
  std::atomic<pid_t> pid{0};       // the process whose memory it is; 0: not known
  std::atomic<int> process{-1};    // its pidfd, open as long as the call lasts, or -1
  std::atomic<pid_t> thread{0};    // the last that came to use this mark
};

// A mark for each thread that makes such calls. Two that shared one would look like a call that
// does not end, so kMax is more than the NIC has threads.
class MoveMarks {
 public:
  static constexpr size_t kMax = 32;
  static std::array<MoveMark, kMax>& all() noexcept;
  static MoveMark& of_this_thread() noexcept;
};

// Lives as long as one call.
class MoveUnderWay {
 public:
  MoveUnderWay(pid_t pid, int process) noexcept : mark_(MoveMarks::of_this_thread()) {
    mark_.pid.store(pid, std::memory_order_relaxed);
    mark_.process.store(process, std::memory_order_relaxed);
    count_up();
  }
  ~MoveUnderWay() { count_up(); }
  MoveUnderWay(const MoveUnderWay&) = delete;
  MoveUnderWay& operator=(const MoveUnderWay&) = delete;

 private:
  // The thread's own, so that no locked instruction is needed.
  void count_up() noexcept {
    mark_.count.store(mark_.count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  MoveMark& mark_;
};

}  // namespace rocemu::dma
