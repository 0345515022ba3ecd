// Ends programs whose memory makes the NIC wait.
//
// A move of the engine's waits for the page faults of the program's memory. Where those are
// answered by another program (userfaultfd(2), a file of a FUSE server), that may be never, and no
// signal interrupts the wait: all programs' traffic stands still with it. So the program in whose
// memory one and the same system call is under way for too long is killed, which closes its
// userfaultfd, and when it goes on as long again, its accomplices who hold that, too, or serve the
// file (wait_sources.h). How long is too long depends on what the kernel says the thread waits for:
//
// - userfaultfd: kUserfault. Whoever registers such memory has to answer at once.
// - a FUSE server that has files in the program's memory: kServer, since those of honest programs
//   read disks and networks.
// - anything else: kAnything. Memory of honest programs takes so long only where a disk or a
//   network file system hangs.
//
// The first two are halved for each program killed for them within kPenalty, so that programs that
// are started for this one after the other get less and less.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "emulator/dma/moves_under_way.h"

namespace rocemu::daemon {

class WaitInquiry;

class MoveWatchdog {
 public:
  // Times are counted in looks: when the machine stands still, nobody is to blame.
  static constexpr std::chrono::milliseconds kLook{10};
  static constexpr std::chrono::milliseconds kUserfault{40};
  static constexpr std::chrono::milliseconds kServer{200};
  static constexpr std::chrono::milliseconds kAnything{2000};
  static constexpr std::chrono::milliseconds kPenalty{60'000};

  MoveWatchdog();  // throws std::system_error
  ~MoveWatchdog();
  MoveWatchdog(const MoveWatchdog&) = delete;
  MoveWatchdog& operator=(const MoveWatchdog&) = delete;

 private:
  struct Call {
    uint64_t count = 0;
    unsigned looks = 0;  // in which it was under way
    std::shared_ptr<WaitInquiry> inquiry;
    unsigned killed_at = 0;  // looks; 0: not yet
  };

  void run();
  void look(const dma::MoveMark& mark, Call& call);
  void judge(const dma::MoveMark& mark, Call& call);
  unsigned patience_looks(const std::string& waits_in, const WaitInquiry& inquiry) const;

  std::array<Call, dma::MoveMarks::kMax> calls_{};
  unsigned penalty_ = 0;  // kUserfault and kServer are halved so often
  uint64_t looks_ = 0;
  uint64_t last_kill_ = 0;  // looks_ then
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocemu::daemon
