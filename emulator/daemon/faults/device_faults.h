// DeviceFaults is what faults do to one device on the engine thread: taps and the port that stand
// ready for those that are active, and the strikes of those that begin.
#pragma once

#include <memory>
#include <unordered_set>

#include "emulator/daemon/engine/port_frame_sink.h"
#include "emulator/daemon/faults/fault_port.h"
#include "emulator/daemon/faults/fault_source.h"
#include "emulator/device/fault_access.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

class DeviceFaults {
 public:
  // All outlive it.
  DeviceFaults(device::Hca& hca, PortFrameSink& frames, ArmedFaults& armed, FaultSource& faults);
  DeviceFaults(const DeviceFaults&) = delete;
  DeviceFaults& operator=(const DeviceFaults&) = delete;

  // Makes what the active faults need stand ready, for new objects as well, and takes away what
  // none needs any more. `now_ns` is the time of the engine's turn.
  void follow(TimeNs now_ns);
  // A moment or a state begins.
  void begin(const fault::Spec& spec);
  void touch_rings();
  void send(const LateEvent& event);
  // The last context that was open when the device was lost: programs that have it or one before it
  // have lost the device.
  device::ContextId last_lost() const { return last_lost_; }

 private:
  std::vector<device::QpView> chosen(const fault::Spec& spec) const;
  void fail_cqs(const fault::Spec& spec);
  void lose_device();
  void follow_port(TimeNs now_ns);
  void follow_rates();

  device::Hca& hca_;
  PortFrameSink& frames_;
  ArmedFaults& armed_;
  FaultSource& faults_;
  FaultNeeds needs_;
  FaultPort port_;
  bool looks_at_frames_ = false;         // the port stands before the device's
  std::unordered_set<uint32_t> slowed_;  // QPNs
  device::ContextId last_lost_ = 0;
};

}  // namespace rocemu::daemon
