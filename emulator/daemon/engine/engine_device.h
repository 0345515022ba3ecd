// EngineDevice is a device as the engine drives it: its HCA, and the port that its frames go
// through. Only the thread that has its turn uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"
#include "emulator/daemon/engine/engine_snapshot.h"
#include "emulator/daemon/engine/pace/turn_budget.h"
#include "emulator/daemon/engine/port_frame_sink.h"
#include "emulator/device/hca.h"
#include "emulator/transport/answer_patience.h"

namespace rocemu::daemon {

class EngineDevice {
 public:
  EngineDevice(std::unique_ptr<device::Hca> hca, dpdk_io::Port& port, dpdk_io::FramePool& pool,
               bool on_switch)
      : hca_(std::move(hca)), frames_(port, pool), stats_(port.stats()), on_switch_(on_switch) {}

  device::Hca& hca() const { return *hca_; }
  PortFrameSink& frames() { return frames_; }
  // True for a device on the NIC's in-process switch, false for one with a port of its own.
  bool on_switch() const { return on_switch_; }

  // Lets it receive, time out, send, and show completions. Returns whether there was any work.
  // Touches nothing of another device but frames that both hold, so that two on a switch that holds
  // frames back (dpdk_io/switch/switch.h) may have their turns at the same time.
  bool turn(TimeNs now, TurnBudget& budget);

  // True when the completions of its last turn are not shown yet: they give memory back to programs
  // that may be lent (dpdk_io/port/lent_payload.h). show_withheld() shows them, when it is not any
  // more.
  bool withholds() const { return withholds_; }
  void show_withheld(TimeNs now) {
    withholds_ = false;
    hca_->publish_completions(now);
  }

  // Something else than a turn may have made completions, which wait to be shown.
  void touch() { touched_ = true; }

  bool has_work() const {
    return frames_.has_work() || hca_->endpoint().wants_transmit() || hca_->has_news();
  }
  // The latest time for the next turn(), but for the transport's deadline, which is not counted.
  TimeNs next_event() const;
  DeviceSnapshot snapshot();

  // Count since the device was made: its turns, and the bytes that were sent and received.
  uint64_t turns() const { return turns_; }
  uint64_t bytes_moved() const { return stats_.rx_bytes + stats_.tx_bytes; }

 private:
  void follow_flows() noexcept;

  std::unique_ptr<device::Hca> hca_;
  PortFrameSink frames_;
  transport::AnswerPatience patience_;
  const dpdk_io::PortStats& stats_;
  bool on_switch_;
  uint64_t turns_ = 0;
  bool touched_ = false;
  bool withholds_ = false;
  bool wants_other_frames_ = false;
};

}  // namespace rocemu::daemon
