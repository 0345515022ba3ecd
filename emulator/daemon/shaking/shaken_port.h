// A port of a shaken device: what arrives is held back as the device's shaking says. It also tells
// the shaking what time it is, at the beginning of each turn, and the engine by when it wants one.
#pragma once

#include <cstdint>
#include <span>

#include "dpdk_io/port/port.h"
#include "emulator/shake/device_shaking.h"
#include "network/due_queue.h"

namespace rocemu::daemon {

class ShakenPort final : public dpdk_io::Port {
 public:
  // Both outlive this.
  ShakenPort(dpdk_io::Port& port, shake::DeviceShaking& shaking) : port_(port), shaking_(shaking) {
    port_.want_single_frames(true);
  }
  ~ShakenPort() override;

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override {
    return port_.transmit(now_ns, burst);
  }
  int poll_fd() const noexcept override { return port_.poll_fd(); }
  bool has_work() const noexcept override {
    return port_.has_work() || held_.next() <= shaking_.agenda().now();
  }
  uint64_t next_arrival_ns() const noexcept override;
  void want_other_frames(bool wanted) noexcept override { port_.want_other_frames(wanted); }
  void want_single_frames(bool wanted) noexcept override { port_.want_single_frames(wanted); }
  bool storm(uint64_t now_ns, bool received, bool sent) noexcept override {
    return port_.storm(now_ns, received, sent);
  }
  const dpdk_io::PortStats& stats() const noexcept override { return port_.stats(); }

 private:
  // More are not held back: they keep frames from the pool that all devices take theirs from.
  static constexpr size_t kMaxHeld = 512;

  void take_in(uint64_t now_ns) noexcept;

  dpdk_io::Port& port_;
  shake::DeviceShaking& shaking_;
  network::DueQueue<rte_mbuf*> held_{kMaxHeld};
};

}  // namespace rocemu::daemon
