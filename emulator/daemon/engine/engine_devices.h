// EngineDevices holds all devices of the NIC and lets them have their turns: one after the other,
// or at the same time where that is faster (parallel_turns.h). Only the engine thread uses it, but
// for what is called before the engine starts.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/engine/engine_device.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/daemon/engine/parallel_turns.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

// How many threads may have a part in a turn; below 2, no other helps the engine's. `asked`: 0
// leaves it to the number of CPUs.
unsigned parallel_threads(ParallelMode mode, unsigned asked, unsigned usable_cpus,
                          unsigned devices_on_switch);

class EngineDevices {
 public:
  explicit EngineDevices(dpdk_io::FramePool& pool) : pool_(pool) {}

  // Before the engine starts. See Engine.
  void add(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch);
  void set_parallel(ParallelMode mode, unsigned threads, dpdk_io::Switch& fabric);

  size_t count() const { return devices_.size(); }
  EngineDevice& at(size_t index) const { return *devices_[index]; }

  // Returns whether there was any work. Once the turn has taken its time (TurnBudget) the rest of
  // the devices have to wait for the next one, which begins with them.
  bool turn(TimeNs now);
  // Tells whether the last turn may have been on as many threads as there are CPUs.
  bool takes_all_cpus() const {
    return parallel_turns_ != nullptr && parallel_turns_->threads() > 1 &&
           parallel_turns_->threads() >= usable_cpus_;
  }
  // Before the engine starts. See Engine.
  void let_payload_be_lent(dpdk_io::Switch& fabric, dpdk_io::TakeLent take);
  // To be called before regions may change: nothing is lent then.
  void take_lent() noexcept;
  // See EngineDevice::touch().
  void touch_all();

  bool any_has_work() const;
  // The earliest deadline of the transports, the earliest of those at which something is sent
  // (Endpoint::next_send()), and the earliest of the devices' other events.
  TimeNs next_deadline() const;
  TimeNs next_send() const;
  TimeNs next_event() const;

  std::vector<DeviceSnapshot> snapshot() const;
  ParallelStats parallel_stats() const;

 private:
  bool turn_by_turn(TimeNs now);
  void show_withheld(TimeNs now);

  dpdk_io::FramePool& pool_;
  std::vector<std::unique_ptr<EngineDevice>> devices_;
  std::unique_ptr<ParallelTurns> parallel_turns_;  // nullptr: one device after the other
  size_t next_ = 0;                                // the device that the next turn begins with
  dpdk_io::Switch* lending_switch_ = nullptr;      // nullptr: payloads are never lent
  dpdk_io::TakeLent take_lent_ = nullptr;
  unsigned usable_cpus_ = 0;  // by this process; set with parallel_turns_
};

}  // namespace rocemu::daemon
