// A kernel network interface as a port: a packet socket on it, restricted to what is sent to one
// UDP port of this machine, so that all other traffic stays the kernel's alone, until somebody
// wants copies of it (other_frames.h).
//
// Frames go and come in batches (gso_batch.h) where they can. DPDK's af_packet driver, which knows
// no batches and copies each frame twice on either side, moves a sixth of that over a veth.
//
// The kernel sees those datagrams, too, and would answer them with ICMP "port unreachable". Hence a
// socket is bound to the UDP port on this interface that throws away what it gets.
//
// Nothing of the interface is changed. Packets leave with the MACs that stand in the frames. A
// frame to the interface's own MAC does not come back: see uplink_port.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/unique_fd.h"
#include "dpdk_io/kernel/gso_batch.h"
#include "dpdk_io/kernel/gso_receiver.h"
#include "dpdk_io/kernel/gso_sender.h"
#include "dpdk_io/kernel/other_frames.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class InterfacePort final : public Port, private GsoSender::Composer {
 public:
  // Needs CAP_NET_RAW in the network namespace. `pool` outlives the port. Throws std::runtime_error
  // with a message that says what to do.
  InterfacePort(const std::string& interface, uint16_t udp_port, FramePool& pool,
                const IdentificationSeal& seal);
  ~InterfacePort() override;

  // No longer frames go in batches, from the IP header on: the kernel does not check those against
  // the interface's MTU. By the thread that uses the port.
  void set_longest_in_batch(unsigned l3_bytes) noexcept { longest_in_batch_bytes_ = l3_bytes; }

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  // May change the identification of frames that it does not take.
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override { return arrivals_.get(); }
  bool has_work() const noexcept override { return filled_ || !receiver_.empty(); }
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  void want_other_frames(bool wanted) noexcept override;
  // Includes the frames that the kernel had no room for.
  const PortStats& stats() const noexcept override;
  // So much can wait for receive(), as the kernel counts: each frame with some overhead.
  unsigned receive_buffer_bytes() const noexcept;

 private:
  struct Start;

  void open(const std::string& interface);
  bool watch(int fd) noexcept;
  unsigned batch_from(std::span<rte_mbuf* const> burst) const noexcept override;
  void compose(unsigned place, std::span<rte_mbuf* const> batch, msghdr& message) noexcept override;

  uint16_t udp_port_;
  IdentificationSeal seal_;
  unsigned interface_index_ = 0;
  UniqueFd reservation_;
  UniqueFd socket_;
  OtherFrames others_;
  bool others_first_ = false;
  UniqueFd arrivals_;  // an epoll descriptor with both sockets
  unsigned longest_in_batch_bytes_ = 0;
  GsoReceiver receiver_;
  bool filled_ = false;        // the last receive() filled all slots, so more may wait
  std::vector<Start> starts_;  // beginnings of the messages to send
  GsoSender sender_{*this};
  PortStats stats_;
  mutable PortStats sum_;
};

}  // namespace rocemu::dpdk_io
