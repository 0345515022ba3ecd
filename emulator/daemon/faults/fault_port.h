// FaultPort stands before a device's port as long as a fault needs it: it drops what comes or goes,
// holds it back, slows it down, and counts packets. What it does not touch passes as it is.
#pragma once

#include <memory>

#include "dpdk_io/port/port.h"
#include "emulator/daemon/faults/fault_source.h"
#include "emulator/device/hca.h"

namespace rocemu::daemon {

class FaultPort final : public dpdk_io::Port {
 public:
  // All outlive it.
  FaultPort(dpdk_io::Port& inner, device::Hca& hca, FaultSource& faults)
      : inner_(inner), hca_(hca), faults_(faults) {}

  dpdk_io::Port& inner() const { return inner_; }
  // Where the link knows of pauses, what comes waits there. What leaves waits here all the same, so
  // that a device which sends again and again does not take the frames of all.
  void set_needs(uint64_t now_ns, const FaultNeeds& needs);

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return inner_.poll_fd(); }
  bool has_work() const noexcept override { return !needs_.holds_received && inner_.has_work(); }
  uint64_t next_arrival_ns() const noexcept override {
    return needs_.holds_received ? kNever : inner_.next_arrival_ns();
  }
  void want_other_frames(bool wanted) noexcept override { inner_.want_other_frames(wanted); }
  void want_single_frames(bool wanted) noexcept override { inner_.want_single_frames(wanted); }
  const dpdk_io::PortStats& stats() const noexcept override { return inner_.stats(); }

 private:
  bool passes(const rte_mbuf* frame) noexcept;
  void lose(std::span<rte_mbuf*> frames, bool arrives) noexcept;
  unsigned allowed(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void count_sent(std::span<rte_mbuf*> burst) noexcept;

  dpdk_io::Port& inner_;
  device::Hca& hca_;
  FaultSource& faults_;
  FaultNeeds needs_;
  uint64_t free_at_ns_ = 0;  // when the last frame has left, at the rate
};

}  // namespace rocemu::daemon
