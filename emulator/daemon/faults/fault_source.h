// FaultSource is what the taps of a device ask of the faults, and tell them.
#pragma once

#include <optional>

#include "emulator/daemon/faults/armed_faults.h"
#include "emulator/device/interface/specs.h"
#include "emulator/transport/interface/work.h"

namespace rocemu::daemon {

// An asynchronous event that comes later.
struct LateEvent {
  uint32_t device = 0;
  device::ContextId context = 0;
  uint64_t element = 0;
  uint32_t event_type = 0;
};

// The thread that has the device's turn makes the calls.
class FaultSource {
 public:
  virtual ~FaultSource() = default;
  virtual TimeNs now_ns() const = 0;
  virtual std::optional<fault::What> strike(fault::Kind kind, const Who& who,
                                            const ArmedFaults::About& about) = 0;
  virtual bool active(fault::Kind kind, const Who& who) const = 0;
  // Counts a request: the status that it is to fail with, if it is.
  virtual std::optional<transport::WcStatus> on_request(const Who& who) = 0;
  virtual void on_packet(const Who& who) = 0;
  // Completions of the device are held back until then.
  virtual void show_at(uint32_t device, TimeNs when_ns) = 0;
  virtual void send_at(const LateEvent& event, TimeNs when_ns) = 0;
};

}  // namespace rocemu::daemon
