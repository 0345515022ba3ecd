// UDP sockets of the kernel as a port (udp_socket.h): no privilege is needed, and the kernel finds
// routes and neighbours. One socket for each address of the port.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "base/unique_fd.h"
#include "dpdk_io/kernel/udp_socket.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class UdpPort final : public Port {
 public:
  struct LocalAddress {
    IpAddress address;
    unsigned interface_index = 0;
  };

  // At least one address. `pool` outlives the port. Throws std::runtime_error with a message that
  // says what to do.
  UdpPort(std::span<const LocalAddress> addresses, uint16_t udp_port, FramePool& pool,
          const IdentificationSeal& seal);

  // The smallest of its sockets' buffers, as the kernel counts: each datagram with some overhead.
  unsigned receive_buffer_bytes() const noexcept;

  unsigned receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  unsigned transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept override;
  int poll_fd() const noexcept override;
  bool has_work() const noexcept override;
  uint64_t next_arrival_ns() const noexcept override { return kNever; }
  // With what the kernel had no room for.
  const PortStats& stats() const noexcept override;

 private:
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  size_t first_asked_ = 0;  // by the next receive(): who fills a burst does not always come first
  UniqueFd epoll_;
  PortStats stats_;
  mutable PortStats sum_;
};

}  // namespace rocemu::dpdk_io
