// A device's end of a link to the machine's network: a port of a real wire, with what the
// in-process switch gives its own ports besides. A frame of the device to its own MAC comes back;
// the link can have impairments in each direction; there may be a capture.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "dpdk_io/port/capture.h"
#include "dpdk_io/port/frame_queue.h"
#include "dpdk_io/port/linked_port.h"
#include "dpdk_io/port/mbuf_frames.h"
#include "network/links.h"

namespace rocemu::dpdk_io {

class UplinkPort final : public LinkedPort {
 public:
  // `number` tells the links of one process apart: their impairments draw differently. `pool` is
  // where the frames come from; it outlives the port.
  UplinkPort(std::unique_ptr<Port> wire, unsigned number, FramePool& pool);

  // Frames to this MAC come back. May be called any time by the thread that uses the port.
  void set_mac(std::array<uint8_t, 6> mac) noexcept;

  // While the link is down what is sent is lost, as with a cable that is out. May be called any
  // time by the thread that uses the port.
  void set_running(bool running) noexcept { running_ = running; }

  // From now on every frame is recorded once, with the time `clock` has then: behind the
  // impairments of the transmit direction, before those of the receive direction. nullptr ends the
  // recording; the writer must outlive it.
  void set_capture(FrameWriter* writer, Capture::Clock clock);

  void set_link(impairment::Direction direction, const impairment::Spec& spec) override;
  network::LinkReport link(impairment::Direction direction) const override;

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return wire_->poll_fd(); }
  bool has_work() const noexcept override { return !arrived_.empty() || wire_->has_work(); }
  uint64_t next_arrival_ns() const noexcept override {
    return std::min(links_.next_arrival(), wire_->next_arrival_ns());
  }
  void want_other_frames(bool wanted) noexcept override { wire_->want_other_frames(wanted); }
  const PortStats& stats() const noexcept override;

 private:
  bool returns(const rte_mbuf* frame) const noexcept;
  unsigned send(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept;
  void drop(rte_mbuf* frame, DropReason reason) noexcept;
  void turn_back(uint64_t now_ns, rte_mbuf* frame) noexcept;
  void come_in(uint64_t now_ns, rte_mbuf* frame) noexcept;

  // The device's end, of which network::Links wants no more than this.
  struct End {
    network::PortLinks links;
  };
  using Links = network::Links<MbufFrames, End, UplinkPort>;
  friend Links;
  void arrive(End& end, impairment::Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept;
  void lose(End& end, impairment::Direction direction, impairment::Loss loss,
            rte_mbuf* frame) noexcept;

  std::unique_ptr<Port> wire_;
  uint64_t mac_ = 0;
  bool running_ = true;
  FrameQueue arrived_;  // frames that did not come straight off the wire
  End end_;
  Links links_;
  Capture capture_;
  PortStats own_;  // counts that the wire does not keep
  mutable PortStats sum_;
};

}  // namespace rocemu::dpdk_io
