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
// "the engine thread" here and elsewhere means the thread that is in a turn; for what belongs to a
// device, the thread that is in that device's part of one.
//
// Before it sleeps (verbs_shim/abi/rings.h) it shows `sleeping` in the engine page and then looks
// once more at all that could have come. A program does it the other way round: doorbell, full
// fence, look at `sleeping`. So one of the two sees the other.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"
#include "dpdk_io/switch/switch.h"
#include "emulator/daemon/engine/capture_flusher.h"
#include "emulator/daemon/engine/command_queue.h"
#include "emulator/daemon/engine/engine_clock.h"
#include "emulator/daemon/engine/engine_context.h"
#include "emulator/daemon/engine/engine_devices.h"
#include "emulator/daemon/engine/engine_lock.h"
#include "emulator/daemon/engine/engine_page.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/daemon/engine/pace/idle_policy.h"
#include "emulator/daemon/engine/wake_set.h"
#include "emulator/daemon/rings/completion_host.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

class Engine {
 public:
  // `pool` outlives the engine. Throws std::system_error.
  explicit Engine(dpdk_io::FramePool& pool) : devices_(pool), command_wake_(wake_set_) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // To be called before start(). The port outlives the engine. Throws std::system_error.
  void add_device(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, bool on_switch);
  // To be called before start(): how devices on that switch, which outlives the engine, have their
  // turns. Without this, one after the other. Throws std::system_error in mode `always`.
  void set_parallel(ParallelMode mode, unsigned threads, dpdk_io::Switch& fabric) {
    devices_.set_parallel(mode, threads, fabric);
  }
  // To be called before start(): what goes over that switch, which outlives the engine, may lend
  // its payload (dpdk_io/port/lent_payload.h), which `take` copies.
  void let_payload_be_lent(dpdk_io::Switch& fabric, dpdk_io::TakeLent take) {
    devices_.let_payload_be_lent(fabric, take);
  }
  // To be called before start(). The writer outlives the engine; it is flushed when the engine has
  // time.
  void set_capture(dpdk_io::FrameWriter* writer) { capture_.set_writer(writer); }

  void start();
  // All commands posted so far are run, then every context is closed, then the thread ends.
  void stop();

  // Any thread may post. The task may run before this returns.
  void post(Task task);
  WakeSet& wake_set() { return wake_set_; }
  int engine_page_fd() const { return page_.fd(); }
  const EngineClock& clock() const { return clock_; }
  // The completion rings of all devices ask this one.
  CompletionHost& completion_host() { return completion_host_; }

  // The rest is for the engine thread, that is, for a posted task.
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.count()); }
  device::Hca& hca(uint32_t index) { return devices_.at(index).hca(); }
  // Sends a frame out of a device's port. False when too many wait: it is lost then.
  bool send_frame(uint32_t device, std::vector<std::byte> frame) {
    return devices_.at(device).frames().queue(std::move(frame));
  }
  PortFrameSink& frames(uint32_t device) { return devices_.at(device).frames(); }
  // Programs are to ask before they post, or need not any more (rings.h).
  void ask_for_attention(bool wanted) { page_.show_attention(wanted); }
  EngineSnapshot snapshot() const;
  EngineContext& add_context(std::unique_ptr<EngineContext> context);
  void close_context(EngineContext& context);

 private:
  void run();
  bool timed_turn();
  bool turn();
  void run_inline();
  void ring_doorbells();
  bool run_devices();
  void idle();
  void yield();
  void sleep();
  bool anything_to_do() const;
  TimeNs wake_up_time() const;

  EngineDevices devices_;
  std::vector<std::unique_ptr<EngineContext>> contexts_;
  size_t first_rung_ = 0;  // of these, in the next turn
  EnginePage page_;
  WakeSet wake_set_;
  WakeFd command_wake_;
  EngineLock lock_;  // guards all but the wake-ups, the commands and the page's `sleeping`
  CommandQueue commands_;
  EngineClock clock_;
  CompletionHost completion_host_;
  IdlePolicy idle_policy_;
  CaptureFlusher capture_;
  EngineStats stats_;
  TimeNs sleeps_until_ns_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocemu::daemon
