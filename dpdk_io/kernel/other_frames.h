// Copies of what comes in on a network interface for the kernel: all but the port's own datagrams
// (port_filter.h). A packet socket of its own, which is there only while somebody wants them, since
// the kernel would copy each frame of the interface into it. The kernel keeps what it gets.
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

  // Does nothing when it is open. Needs CAP_NET_RAW in the network namespace. 0 or an errno value.
  int open(unsigned interface_index, uint16_t udp_port) noexcept;
  // Does not wait for the kernel, which takes its time to close a packet socket.
  void close() noexcept;

  int fd() const noexcept { return socket_.get(); }  // -1: closed

  unsigned receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept;

 private:
  bool receive_into(rte_mbuf& frame, PortStats& stats) noexcept;

  FramePool& pool_;
  UniqueFd socket_;
};

}  // namespace rocemu::dpdk_io
