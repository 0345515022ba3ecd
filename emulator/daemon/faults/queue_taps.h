// The taps that faults put before a device's queues and event pipes (device/interface/taps.h), and
// that are there as long as a fault needs them.
#pragma once

#include <deque>
#include <memory>

#include "emulator/daemon/faults/fault_source.h"
#include "emulator/device/fault_access.h"

namespace rocemu::daemon {

// Returns the device, program and peer of that QP.
Who who_has(device::Hca& hca, wire::Qpn qpn);

// Holds completions back, in their order, or changes their status.
class CompletionTap final : public device::CompletionRingTap {
 public:
  CompletionTap(std::unique_ptr<device::CompletionRing> inner, device::Hca& hca,
                FaultSource& faults)
      : inner_(std::move(inner)), hca_(hca), faults_(faults) {}

  uint32_t entries() const noexcept override { return inner_->entries(); }
  bool push(const transport::Completion& completion) noexcept override;
  bool show() noexcept override;
  bool take_arm() noexcept override { return inner_->take_arm(); }
  uint32_t unread() const noexcept override { return inner_->unread(); }
  std::unique_ptr<device::CompletionRing> release() noexcept override;

 private:
  // More than that are not held: the oldest are shown early.
  static constexpr size_t kMaxHeld = 65536;

  struct Held {
    transport::Completion completion;
    TimeNs due_ns;
  };
  bool hand_on();

  std::unique_ptr<device::CompletionRing> inner_;
  device::Hca& hca_;
  FaultSource& faults_;
  std::deque<Held> held_;
  bool lost_ = false;  // the ring was full when one was handed on
};

// Counts requests as they are taken, and makes one fail.
class RequestTap final : public device::SendQueueTap {
 public:
  RequestTap(transport::SendQueue& inner, wire::Qpn qpn, device::Hca& hca, FaultSource& faults)
      : SendQueueTap(inner), qpn_(qpn), hca_(hca), faults_(faults) {}

  bool pop(transport::SendWork& work) noexcept override;

 private:
  wire::Qpn qpn_;
  device::Hca& hca_;
  FaultSource& faults_;
};

// Delays or drops events about SRQs and last WQEs.
class AsyncEventTap final : public device::EventTap {
 public:
  AsyncEventTap(std::unique_ptr<device::EventChannel> inner, device::ContextId context,
                pid_t program, uint32_t device, FaultSource& faults)
      : EventTap(std::move(inner)),
        context_(context),
        who_{.device = device, .program = program},
        faults_(faults) {}

  bool async_event(uint64_t element, uint32_t event_type) noexcept override;

 private:
  device::ContextId context_;
  Who who_;
  FaultSource& faults_;
};

}  // namespace rocemu::daemon
