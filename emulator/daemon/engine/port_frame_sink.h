// PortFrameSink joins a device's endpoint to its DPDK port: received frames go in as spans, and the
// transport writes frames to send straight into the mbufs that leave. Only the thread that has the
// device's turn uses it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/time.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/lent_payload.h"
#include "dpdk_io/port/port.h"
#include "emulator/daemon/engine/pace/turn_budget.h"
#include "emulator/transport/endpoint.h"
#include "emulator/transport/interface/host_interface.h"

namespace rocemu::daemon {

class PortFrameSink final : private transport::FrameSink {
 public:
  // Both outlive this object.
  PortFrameSink(dpdk_io::Port& port, dpdk_io::FramePool& pool) : port_(&port), pool_(pool) {}
  ~PortFrameSink();
  PortFrameSink(const PortFrameSink&) = delete;
  PortFrameSink& operator=(const PortFrameSink&) = delete;

  // Hands what has arrived to the endpoint, at most kReceiveBudget frames, and no more than a burst
  // when the budget of the turn is spent; returns how many.
  unsigned receive(TimeNs now, transport::Endpoint& endpoint, TurnBudget& budget) noexcept;
  // True when the last receive() left frames at the port.
  bool unread() const noexcept { return unread_; }
  // Lets the endpoint send, at most kBurst frames, after those the port did not take last time.
  // Returns how many left.
  unsigned transmit(TimeNs now, transport::Endpoint& endpoint) noexcept;

  // Sends a whole frame, built elsewhere, at the next transmit(). False when too many wait: it is
  // lost then.
  bool queue(std::vector<std::byte> frame);

  // Copies by `copy` what runs that wait for the port have lent.
  void take_lent(dpdk_io::TakeLent copy) noexcept;

  // True while there is something to do that no descriptor will tell of.
  bool has_work() const noexcept {
    return waiting_ != 0 || !queued_.empty() || looped_back_ != 0 || port_->has_work();
  }
  dpdk_io::Port& port() const noexcept { return *port_; }
  // Another port from now on: the same one, with something standing before it. It outlives this.
  void use_port(dpdk_io::Port& port) noexcept;

 private:
  static constexpr unsigned kBurst = 64;
  static constexpr unsigned kReceiveBudget = 256;
  static constexpr size_t kMaxQueued = 8192;

  bool allocate(transport::FrameBuffer& buffer) noexcept override;
  void send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept override;
  void discard(const transport::FrameBuffer& buffer) noexcept override;
  bool may_owe_icrc() const noexcept override { return port_->takes_owed_icrc(); }
  bool takes_runs() const noexcept override { return port_->run_pool() != nullptr; }
  bool allocate_run(transport::FrameBuffer& buffer) noexcept override;
  bool takes_lent() const noexcept override { return port_->takes_lent(); }
  uint64_t landing_epoch() const noexcept override { return port_->landing_epoch(); }
  bool take(transport::FrameBuffer& buffer, rte_mbuf* frame) noexcept;
  template <class Keep>
  void keep_waiting(Keep keep) noexcept;
  void hand_over(TimeNs now, transport::Endpoint& endpoint,
                 std::span<rte_mbuf* const> frames) noexcept;
  void hand_to_port(TimeNs now) noexcept;
  void send_queued(TimeNs now) noexcept;
  void loop_back(rte_mbuf* frame) noexcept;
  unsigned receive_looped_back(TimeNs now, transport::Endpoint& endpoint) noexcept;

  dpdk_io::Port* port_;
  dpdk_io::FramePool& pool_;
  // Finished frames, the first waiting_ of burst_, that the port has not taken yet.
  std::array<rte_mbuf*, kBurst> burst_;
  std::deque<std::vector<std::byte>> queued_;
  unsigned waiting_ = 0;
  unsigned being_built_ = 0;
  // Multicast frames go to QPs of this device, too: no switch sends a frame back to where it came
  // from.
  std::array<rte_mbuf*, kBurst> own_multicast_;
  unsigned looped_back_ = 0;
  unsigned sent_ = 0;
  bool unread_ = false;
};

}  // namespace rocemu::daemon
