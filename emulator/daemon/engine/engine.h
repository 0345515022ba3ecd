// The engine: the one thread that owns devices, QPs, timers and ports, and that moves everything;
// where that is faster, others help it with their turns (parallel_turns.h).
//
// A turn runs the commands of the control plane, rings doorbells, and lets every device receive,
// time out and send. Between bursts nothing else runs, so that no control operation is ever half
// done from the data path's point of view. When there is nothing to do it sleeps as idle_policy.h
// says.
//
// While it sleeps, a thread that has a command for it runs the turn itself (engine_lock.h): that is
// a function call where waking the engine, and being woken by it, takes two changes of threads. So
// "the engine thread" here and elsewhere means: in a turn; for what belongs to a device, in that
// device's part of one.
//
// Going to sleep (rings.h): it shows `sleeping` in the engine page and then looks once more at all
// that could have come. A program does it the other way round: doorbell, full fence, look at
// `sleeping`. So one of the two sees the other.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/port/port.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/engine/command_queue.h"
#include "emulator/daemon/engine/engine_clock.h"
#include "emulator/daemon/engine/engine_context.h"
#include "emulator/daemon/engine/engine_cpu.h"
#include "emulator/daemon/engine/engine_device.h"
#include "emulator/daemon/engine/engine_lock.h"
#include "emulator/daemon/engine/idle_policy.h"
#include "emulator/daemon/engine/parallel_turns.h"
#include "emulator/daemon/engine/wake_set.h"
#include "emulator/daemon/rings/shared_memory.h"
#include "emulator/device/hca.h"
#include "verbs_shim/abi/rings.h"

namespace rocemu::daemon {

struct EngineStats {
  uint64_t turns = 0;
  uint64_t busy_turns = 0;
  uint64_t commands = 0;
  uint64_t borrowed_turns = 0;  // by other threads, while the engine slept
  uint64_t yields = 0;
  uint64_t sleeps = 0;
  uint64_t block_modes = 0;  // how often somebody was found to hog the core
  ParallelStats parallel;
};

class Engine {
 public:
  // `pool` outlives the engine. Throws std::system_error.
  explicit Engine(dpdk_io::FramePool& pool);
  ~Engine();  // stops it
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before start(). The port outlives the engine.
  void add_device(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch);
  // Before start(): how devices on that switch, which outlives the engine, have their turns.
  // Without this, one after the other. Throws std::system_error in mode `always`.
  void set_parallel(ParallelMode mode, dpdk_io::Switch& fabric);
  // Before start(). The writer outlives the engine; it is flushed when the engine has time.
  void set_capture(dpdk_io::PcapWriter* writer) { capture_ = writer; }

  void start();
  // All commands posted so far are run, then every context is closed, then the thread ends.
  void stop();

  // Any thread. The task may run before this returns.
  void post(Task task);
  WakeSet& wake_set() { return wake_set_; }
  int engine_page_fd() const { return engine_page_fd_.get(); }
  const EngineClock& clock() const { return clock_; }
  EngineCpu& core() { return core_; }

  // The engine thread, that is, from within a posted task.
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  device::Hca& hca(uint32_t index) { return devices_[index]->hca(); }
  const dpdk_io::Port& port(uint32_t index) const { return devices_[index]->frames().port(); }
  // Sends a frame out of a device's port. False when too many wait.
  bool send_frame(uint32_t device, std::vector<std::byte> frame) {
    return devices_[device]->frames().queue(std::move(frame));
  }
  EngineStats stats() const;
  EngineContext& add_context(std::unique_ptr<EngineContext> context);
  void close_context(EngineContext& context);

 private:
  void run();
  bool timed_turn();
  bool turn();
  void run_inline();
  bool ring_doorbells();
  bool run_devices();
  void show_crowded(bool crowded);
  void idle();
  void yield();
  void sleep();
  bool anything_to_do() const;
  TimeNs wake_up_time() const;
  void flush_capture();

  dpdk_io::FramePool& pool_;
  dpdk_io::PcapWriter* capture_ = nullptr;
  std::vector<std::unique_ptr<EngineDevice>> devices_;
  std::unique_ptr<ParallelTurns> parallel_turns_;
  std::vector<std::unique_ptr<EngineContext>> contexts_;
  SharedMemory page_memory_;
  rocemu_engine_page& page_;
  UniqueFd engine_page_fd_;
  WakeSet wake_set_;
  WakeFd command_wake_;
  EngineLock lock_;  // guards all but the wake-ups, the commands and the page's `sleeping`
  CommandQueue commands_;
  EngineClock clock_;
  EngineCpu core_;
  IdlePolicy idle_policy_;
  EngineStats stats_;
  uint64_t flushed_frames_ = 0;
  TimeNs next_flush_ns_ = 0;
  TimeNs sleeps_until_ns_ = 0;
  bool crowds_ = false;  // turns on several threads take all cores there are
  bool shows_crowded_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocemu::daemon
