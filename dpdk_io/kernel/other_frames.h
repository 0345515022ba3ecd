// Copies of what comes in on a network interface for the kernel: all but the port's own datagrams
// (port_filter.h). A packet socket of its own, into which the kernel copies each frame of the
// interface while somebody wants them. It stays when nobody does, and gets nothing: to close one
// takes the kernel its time, and programs may make and destroy flows as fast as they can.
//
// A frame looks as it did on the wire: a VLAN tag stands in it, and a checksum that the sender left
// to its hardware is put in. Frames that the kernel has merged (GRO) or not yet cut come as one, or
// not at all when that is longer than a frame of the pool.
#pragma once

#include <span>
#include <string>

#include "base/unique_fd.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class OtherFrames {
 public:
  // `pool` outlives it.
  explicit OtherFrames(FramePool& pool) : pool_(pool) {}

  // Does nothing when it is started. Needs CAP_NET_RAW in the network namespace, the first time. 0
  // or an errno value.
  int start(unsigned interface_index, uint16_t udp_port) noexcept;
  // What has come and was not received is for nobody.
  void stop() noexcept;

  bool started() const noexcept { return started_; }
  int fd() const noexcept { return socket_.get(); }  // -1: never started

  unsigned receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept;

 private:
  int open(unsigned interface_index) noexcept;
  void drain() noexcept;
  bool receive_into(rte_mbuf& frame, PortStats& stats) noexcept;

  FramePool& pool_;
  UniqueFd socket_;
  bool started_ = false;
};

}  // namespace rocemu::dpdk_io
