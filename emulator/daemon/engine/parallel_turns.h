// ParallelTurns lets other threads help the engine's with a turn, where that is faster, in one of
// two ways (parallel_policy.h).
//
// Devices that have much to do have their turns at the same time, each on one thread; what is
// between devices, the switch above all, is done before and after by the engine's alone.
//
// Or the devices have their turns one after the other, and what they move, most of the work, is
// divided by program: each program's bytes are moved by one thread (dma/movers.h). All of them have
// moved before a device goes on.
//
// So nothing of a device, a queue or a connection needs a lock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/time.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/engine/engine_device.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/daemon/engine/parallel_policy.h"
#include "emulator/daemon/engine/turn_workers.h"
#include "emulator/dma/movers.h"

namespace rocemu::daemon {

class ParallelTurns final : private dma::Movers {
 public:
  using Devices = std::span<const std::unique_ptr<EngineDevice>>;

  // On at most `threads`, the engine's among them, two or more and at most
  // ParallelPolicy::kMaxThreads. `fabric` is the switch of all devices that say they are on one; it
  // outlives this object. Throws std::system_error.
  ParallelTurns(ParallelMode mode, unsigned threads, dpdk_io::Switch& fabric);

  // To be called before each turn of the devices, which are the same each time, at most 64. True:
  // it is turn() that has to follow.
  bool next_is_together(TimeNs now, Devices devices);
  // Returns whether there was any work.
  bool turn(TimeNs now, Devices devices);
  // For the devices' turns where it is not turn() that has to follow.
  dma::Movers& movers() { return *this; }
  // How many threads the last turn may have been on.
  unsigned threads() const { return threads_; }

  const ParallelStats& stats() const { return stats_; }

 private:
  struct Load {
    uint64_t turns = 0;        // of the device, up to now
    uint64_t bytes_moved = 0;  // likewise
    uint64_t bytes_last_turn = 0;
    bool much = false;
  };

  uint64_t look_at_load(Devices devices);
  void run(unsigned programs, const std::function<void(unsigned)>& move) noexcept override;

  dpdk_io::Switch& switch_;
  ParallelPolicy policy_;
  ParallelMode mode_;
  TurnWorkers workers_;
  std::array<Load, dpdk_io::Switch::kMaxPorts> loads_{};
  uint64_t bytes_moved_ = 0;
  uint64_t loaded_ = 0;  // a bit for each device that has much to do in this turn
  // The most programs whose bytes were moved at once: in this turn, in the one before, and in the
  // last two turns in which devices went one after the other.
  unsigned programs_now_ = 0, programs_before_ = 0, programs_ = 0;
  unsigned threads_ = 1;
  bool together_ = false;  // it is devices' turns that the threads have a part in
  unsigned first_ = 0;     // the device that a turn begins with, of those with much to do
  size_t next_other_ = 0;  // and of the others
  ParallelStats stats_;
};

}  // namespace rocemu::daemon
