// A device's end of a link to the machine's network: a port of a real wire, with what the
// in-process switch gives its own ports besides. What a device sends to its own MAC comes back; the
// link can have impairments in each direction; there may be a capture.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "dpdk_io/port/frame_queue.h"
#include "dpdk_io/port/frames_in_flight.h"
#include "dpdk_io/port/linked_port.h"

namespace rocemu::dpdk_io {

class PcapWriter;

class UplinkPort final : public LinkedPort {
 public:
  using Clock = std::function<uint64_t()>;  // nanoseconds since the epoch

  // `number` tells the links of one process apart: their impairments draw differently. `pool` is
  // where the frames come from; it outlives the port.
  UplinkPort(std::unique_ptr<Port> wire, unsigned number, FramePool& pool);

  // Whose frames come back. Any time, by the thread that uses the port.
  void set_mac(std::array<uint8_t, 6> mac) noexcept;

  // While the link is down what is sent is lost, as with a cable that is out. Any time, by the
  // thread that uses the port.
  void set_running(bool running) noexcept { running_ = running; }

  // From now on every frame is recorded once, with the time `clock` has then: behind the
  // impairments of the transmit direction, before those of the receive direction. nullptr ends the
  // recording; the writer must outlive it.
  void set_capture(PcapWriter* writer, Clock clock);

  void set_link(impairment::Direction direction, const impairment::Spec& spec) override;
  LinkReport link(impairment::Direction direction) const override;

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return wire_->poll_fd(); }
  bool has_work() const noexcept override { return !arrived_.empty() || wire_->has_work(); }
  uint64_t next_arrival_ns() const noexcept override {
    return std::min(in_flight_.next_arrival_ns(), wire_->next_arrival_ns());
  }
  const PortStats& stats() const noexcept override;

 private:
  bool returns(const rte_mbuf* frame) const noexcept;
  unsigned send(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void record(rte_mbuf* frame) noexcept;
  void drop(rte_mbuf* frame, DropReason reason) noexcept;

  void travel(impairment::Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept;
  void arrive(impairment::Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept;
  void come_in(uint64_t now_ns, rte_mbuf* frame) noexcept;
  void arrive_due(uint64_t now_ns) noexcept;
  std::unique_ptr<ImpairedLink>& impaired_link(impairment::Direction direction) noexcept {
    return direction == impairment::Direction::transmit ? transmit_link_ : receive_link_;
  }

  std::unique_ptr<Port> wire_;
  unsigned number_;
  unsigned pool_frames_;
  uint64_t mac_ = 0;
  bool running_ = true;
  FrameQueue arrived_;  // what did not come straight off the wire
  FramesInFlight in_flight_;
  std::unique_ptr<ImpairedLink> transmit_link_;  // empty without impairments
  std::unique_ptr<ImpairedLink> receive_link_;
  PcapWriter* capture_ = nullptr;
  Clock capture_clock_;
  PortStats own_;  // what the wire did not count
  mutable PortStats sum_;
};

}  // namespace rocemu::dpdk_io
