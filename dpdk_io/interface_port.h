// A kernel network interface as a port: DPDK's af_packet driver on it, restricted to what is sent
// to one UDP port of this machine, so that all other traffic stays the kernel's alone.
//
// The kernel sees those datagrams, too, and would answer them with ICMP "port unreachable". Hence a
// socket is bound to the UDP port on this interface that throws away what it gets.
//
// Nothing of the interface is changed. What leaves bears the MACs that stand in the frames. What is
// sent to the interface's own MAC does not come back: see uplink_port.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dpdk_io/frame_pool.h"
#include "dpdk_io/port.h"
#include "dpdk_io/unique_fd.h"

namespace rocemu::dpdk_io {

class InterfacePort final : public Port {
 public:
  // The longest frame, and so the least data room of the pool.
  static constexpr unsigned kFrameBytes = 4576;

  // Needs an Eal, CAP_NET_RAW and CAP_NET_ADMIN in the network namespace. `pool` outlives the port.
  // Throws std::runtime_error with a message that says what to do.
  InterfacePort(const std::string& interface, uint16_t udp_port, FramePool& pool);
  ~InterfacePort() override;

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override;
  bool has_work() const noexcept override;
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  const PortStats& stats() const noexcept override { return stats_; }
  // How many frames that arrive can wait.
  unsigned ring_frames() const noexcept { return ring_frames_; }

 private:
  void start(FramePool& pool);

  std::string interface_;
  std::string device_name_;
  UniqueFd guard_;
  uint16_t port_id_ = 0;
  int ring_fd_ = -1;  // the driver's socket
  unsigned ring_frames_ = 0;
  PortStats stats_;
};

}  // namespace rocemu::dpdk_io
