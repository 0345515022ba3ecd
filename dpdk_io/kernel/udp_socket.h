// A UDP socket of the kernel as one end of a link: whole Ethernet frames go in and out, of which
// the kernel carries what is behind the UDP header.
//
// The kernel writes the IP header itself. It does so in a way that can be known beforehand, which a
// checksum over that header needs: with IP_MTU_DISCOVER = IP_PMTUDISC_DO (ip(7)) an IPv4 datagram
// of an unconnected socket has DF set and identification 0. Type of service, TTL (IPv6: traffic
// class, hop limit) and the UDP destination are those of the frame. The UDP source port is the
// socket's own, so a frame has to bear that one.
//
// Datagrams that arrive come without their IP header. One is made for each: identification 0, DF,
// TTL 64; type of service, with its mark of congestion, addresses, UDP source port and lengths are
// right. The kernel puts none together into a batch whose types of service differ.
//
// Frames go and come in batches (gso_batch.h) where they can. The identifications in a batch that
// arrives are made up to count from 0, as those do that a socket like this one sends.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/net/ip_address.h"
#include "base/unique_fd.h"
#include "dpdk_io/kernel/gso_batch.h"
#include "dpdk_io/kernel/gso_receiver.h"
#include "dpdk_io/kernel/gso_sender.h"
#include "dpdk_io/port/frame_pool.h"
#include "dpdk_io/port/port.h"

namespace rocemu::dpdk_io {

class UdpSocket final : private GsoSender::Composer {
 public:
  // `interface_index` is that of the interface with the address. Throws std::runtime_error with a
  // message that says what to do.
  UdpSocket(const IpAddress& address, uint16_t udp_port, unsigned interface_index, FramePool& pool,
            const IdentificationSeal& seal);
  ~UdpSocket();

  int fd() const noexcept { return fd_.get(); }
  const IpAddress& address() const noexcept { return address_; }
  // The size of the receive buffer as the kernel counts: each datagram with some overhead.
  unsigned receive_buffer_bytes() const noexcept;

  // Fills `burst` from the front with what has arrived; drops are counted in `stats`.
  unsigned receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept;
  // True while receive() has frames that came earlier, or has left some in the socket's buffer.
  bool has_work() const noexcept { return filled_ || !receiver_.empty(); }

  // True when the frame is one of an IP datagram from this socket's address.
  bool can_send(const rte_mbuf* frame) const noexcept;
  // Takes frames from the front, for which can_send() is true, and returns how many; what the
  // kernel refuses for good is dropped and counted in `stats`. May change the identification of
  // those it does not take.
  unsigned send(uint64_t now_ns, std::span<rte_mbuf* const> burst, PortStats& stats) noexcept;

 private:
  struct Control;
  struct Envelope;
  using Headers = std::array<std::byte, kMaxHeadersBytes>;

  unsigned headers_bytes() const noexcept;
  void write_headers(Headers& headers, const sockaddr_storage& source,
                     uint8_t traffic_class) const noexcept;
  unsigned batch_from(std::span<rte_mbuf* const> burst) const noexcept override;
  void compose(unsigned place, std::span<rte_mbuf* const> batch, msghdr& message) noexcept override;

  IpAddress address_;
  uint16_t udp_port_;
  unsigned interface_index_;
  IdentificationSeal seal_;
  bool ipv4_;
  UniqueFd fd_;
  GsoReceiver receiver_;
  std::array<sockaddr_storage, GsoReceiver::kSlots> sources_{};
  bool filled_ = false;              // the last receive() filled all slots, so more may wait
  std::vector<Envelope> envelopes_;  // envelopes of the messages to send
  GsoSender sender_{*this};
};

}  // namespace rocemu::dpdk_io
