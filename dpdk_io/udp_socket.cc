#include "dpdk_io/udp_socket.h"

#include <linux/udp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace rocemu::dpdk_io {
namespace {

constexpr int kBufferBytes = 8 << 20;  // wanted; the kernel has a limit for ordinary users
constexpr uint8_t kDefaultHopLimit = 64;
constexpr unsigned kEthernetBytes = sizeof(rte_ether_hdr);
constexpr unsigned kUdpBytes = sizeof(rte_udp_hdr);

void demand(int fd, int level, int name, int value, const IpAddress& address) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0)
    throw std::runtime_error("UDP socket of " + to_text(address) + ": " + std::strerror(errno));
}

void enlarge(int fd, int forced, int asked) {
  const int value = kBufferBytes;
  if (::setsockopt(fd, SOL_SOCKET, forced, &value, sizeof value) != 0)
    ::setsockopt(fd, SOL_SOCKET, asked, &value, sizeof value);
}

std::runtime_error bind_error(const IpAddress& address, uint16_t port, int error) {
  std::string message =
      "UDP port " + std::to_string(port) + " of " + to_text(address) + ": " + std::strerror(error);
  if (error == EADDRINUSE)
    message +=
        ". Another NIC has it: another rocemud, or Linux's rdma_rxe (see: rdma link). End it, or "
        "use another address";
  if (error == EADDRNOTAVAIL)
    message += ". It is no address of this machine or network namespace; see: ip address";
  return std::runtime_error(message);
}

// Room for the control messages of one datagram: two integers.
constexpr size_t kControlBytes = 2 * CMSG_SPACE(sizeof(int));

void add_control(msghdr& message, int level, int type, int value) {
  auto* const header =
      reinterpret_cast<cmsghdr*>(static_cast<char*>(message.msg_control) + message.msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(header), &value, sizeof value);
  message.msg_controllen += CMSG_SPACE(sizeof value);
}

}  // namespace

struct UdpSocket::Control {
  alignas(cmsghdr) char bytes[kControlBytes];
};

UdpSocket::UdpSocket(const IpAddress& address, uint16_t udp_port, unsigned interface_index,
                     FramePool& pool)
    : address_(address),
      udp_port_(udp_port),
      interface_index_(interface_index),
      pool_(pool),
      ipv4_(address.is_ipv4()),
      fd_(::socket(ipv4_ ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!fd_)
    throw std::runtime_error("UDP socket of " + to_text(address) + ": " + std::strerror(errno));
  const int fd = fd_.get();
  if (ipv4_) {
    demand(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, address);
    demand(fd, IPPROTO_IP, IP_TTL, kDefaultHopLimit, address);
  } else {
    demand(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, address);
    demand(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, address);
    demand(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kDefaultHopLimit, address);
    // RoCE senders leave the UDP checksum out (IBTA annex A17), which IPv6 sockets refuse
    // otherwise.
    demand(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, address);
  }
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  const SocketAddress local = to_socket_address(address, udp_port, interface_index);
  if (::bind(fd, local.get(), local.length) != 0) throw bind_error(address, udp_port, errno);
}

UdpSocket::~UdpSocket() {
  for (rte_mbuf* frame : waiting_)
    if (frame != nullptr) FramePool::free(frame);
}

unsigned UdpSocket::receive_buffer_bytes() const noexcept {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  return static_cast<unsigned>(std::max(bytes, 0));
}

unsigned UdpSocket::headers_bytes() const noexcept {
  return kEthernetBytes + (ipv4_ ? sizeof(rte_ipv4_hdr) : sizeof(rte_ipv6_hdr)) + kUdpBytes;
}

// ---- receiving ----

bool UdpSocket::refill(unsigned slot) noexcept {
  rte_mbuf* const frame = pool_.allocate();
  if (frame == nullptr) return false;
  waiting_[slot] = frame;
  waiting_bytes_[slot] = {rte_pktmbuf_mtod(frame, std::byte*) + headers_bytes(),
                          static_cast<size_t>(rte_pktmbuf_tailroom(frame) - headers_bytes())};
  msghdr& message = receiving_[slot].msg_hdr;
  message = {};
  message.msg_name = &sources_[slot];
  message.msg_namelen = sizeof sources_[slot];
  message.msg_iov = &waiting_bytes_[slot];
  message.msg_iovlen = 1;
  return true;
}

unsigned UdpSocket::receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept {
  const unsigned most = std::min(kBurst, static_cast<unsigned>(burst.size()));
  unsigned ready = 0;
  while (ready < most && (waiting_[ready] != nullptr || refill(ready))) ++ready;
  if (ready == 0) return 0;
  const int arrived = ::recvmmsg(fd_.get(), receiving_.data(), ready, MSG_DONTWAIT, nullptr);
  unsigned count = 0;
  for (int i = 0; i < arrived; ++i) {
    const auto slot = static_cast<unsigned>(i);
    rte_mbuf* const frame = std::exchange(waiting_[slot], nullptr);
    if ((receiving_[slot].msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      ++stats.dropped(DropReason::malformed);
      FramePool::free(frame);
      continue;
    }
    write_headers(frame, slot, receiving_[slot].msg_len);
    stats.rx_bytes += frame->pkt_len;
    burst[count++] = frame;
  }
  stats.rx_frames += count;
  return count;
}

void UdpSocket::write_headers(rte_mbuf* frame, unsigned slot,
                              unsigned payload_bytes) const noexcept {
  auto* const ethernet = rte_pktmbuf_mtod(frame, rte_ether_hdr*);
  std::memset(ethernet, 0, headers_bytes());
  auto* const l3 = reinterpret_cast<std::byte*>(ethernet + 1);
  const auto udp_bytes = static_cast<uint16_t>(kUdpBytes + payload_bytes);
  uint16_t source_port;
  std::byte* l4;
  if (ipv4_) {
    const auto& source = reinterpret_cast<const sockaddr_in&>(sources_[slot]);
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
    auto& ip = *reinterpret_cast<rte_ipv4_hdr*>(l3);
    ip.version_ihl = RTE_IPV4_VHL_DEF;
    ip.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(sizeof ip + udp_bytes));
    ip.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
    ip.time_to_live = kDefaultHopLimit;
    ip.next_proto_id = IPPROTO_UDP;
    ip.src_addr = source.sin_addr.s_addr;
    std::memcpy(&ip.dst_addr, address_.ipv4_bytes(), sizeof ip.dst_addr);
    ip.hdr_checksum = rte_ipv4_cksum(&ip);
    source_port = source.sin_port;
    l4 = l3 + sizeof ip;
  } else {
    const auto& source = reinterpret_cast<const sockaddr_in6&>(sources_[slot]);
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
    auto& ip = *reinterpret_cast<rte_ipv6_hdr*>(l3);
    ip.vtc_flow = rte_cpu_to_be_32(6u << 28);
    ip.payload_len = rte_cpu_to_be_16(udp_bytes);
    ip.proto = IPPROTO_UDP;
    ip.hop_limits = kDefaultHopLimit;
    std::memcpy(ip.src_addr, &source.sin6_addr, sizeof ip.src_addr);
    std::memcpy(ip.dst_addr, address_.bytes.data(), sizeof ip.dst_addr);
    source_port = source.sin6_port;
    l4 = l3 + sizeof ip;
  }
  auto& udp = *reinterpret_cast<rte_udp_hdr*>(l4);
  udp.src_port = source_port;
  udp.dst_port = rte_cpu_to_be_16(udp_port_);
  udp.dgram_len = rte_cpu_to_be_16(udp_bytes);
  frame->data_len = static_cast<uint16_t>(headers_bytes() + payload_bytes);
  frame->pkt_len = frame->data_len;
}

// ---- sending ----

bool UdpSocket::can_send(const rte_mbuf* frame) const noexcept {
  if (frame->nb_segs != 1 || frame->data_len < headers_bytes()) return false;
  const auto* const ethernet = rte_pktmbuf_mtod(frame, const rte_ether_hdr*);
  const auto* const l3 = reinterpret_cast<const std::byte*>(ethernet + 1);
  if (ipv4_)
    return ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
           std::memcmp(l3 + offsetof(rte_ipv4_hdr, src_addr), address_.ipv4_bytes(), 4) == 0;
  return ethernet->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
         std::memcmp(l3 + offsetof(rte_ipv6_hdr, src_addr), address_.bytes.data(), 16) == 0;
}

unsigned UdpSocket::send(std::span<rte_mbuf* const> burst, PortStats& stats) noexcept {
  std::array<mmsghdr, kBurst> messages;
  std::array<iovec, kBurst> payloads;
  std::array<SocketAddress, kBurst> destinations;
  std::array<Control, kBurst> controls;
  const unsigned most = std::min(kBurst, static_cast<unsigned>(burst.size()));
  for (unsigned i = 0; i < most; ++i) {
    auto* const start = rte_pktmbuf_mtod(burst[i], std::byte*);
    const std::byte* const l3 = start + kEthernetBytes;
    uint8_t traffic_class, hop_limit;
    uint16_t port;
    std::memcpy(&port, start + headers_bytes() - kUdpBytes + offsetof(rte_udp_hdr, dst_port), 2);
    port = rte_be_to_cpu_16(port);
    if (ipv4_) {
      const auto& ip = *reinterpret_cast<const rte_ipv4_hdr*>(l3);
      traffic_class = ip.type_of_service;
      hop_limit = ip.time_to_live;
      destinations[i] = to_socket_address(IpAddress::of_ipv4(&ip.dst_addr), port, 0);
    } else {
      const auto& ip = *reinterpret_cast<const rte_ipv6_hdr*>(l3);
      traffic_class = static_cast<uint8_t>(rte_be_to_cpu_32(ip.vtc_flow) >> 20);
      hop_limit = ip.hop_limits;
      destinations[i] = to_socket_address(IpAddress::of_ipv6(ip.dst_addr), port, interface_index_);
    }
    payloads[i] = {start + headers_bytes(), burst[i]->data_len - headers_bytes()};
    msghdr& message = messages[i].msg_hdr;
    message = {};
    message.msg_name = &destinations[i].storage;
    message.msg_namelen = destinations[i].length;
    message.msg_iov = &payloads[i];
    message.msg_iovlen = 1;
    if (traffic_class == 0 && hop_limit == kDefaultHopLimit) continue;
    message.msg_control = controls[i].bytes;
    add_control(message, ipv4_ ? IPPROTO_IP : IPPROTO_IPV6, ipv4_ ? IP_TOS : IPV6_TCLASS,
                traffic_class);
    add_control(message, ipv4_ ? IPPROTO_IP : IPPROTO_IPV6, ipv4_ ? IP_TTL : IPV6_HOPLIMIT,
                hop_limit);
  }

  unsigned taken = 0;
  while (taken < most) {
    const int sent = ::sendmmsg(fd_.get(), &messages[taken], most - taken, MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)) break;
    const unsigned over = sent < 0 ? 1 : static_cast<unsigned>(sent);
    if (sent < 0) ++stats.dropped(DropReason::refused_by_kernel);
    for (unsigned i = taken; i < taken + over; ++i) {
      ++stats.tx_frames;
      stats.tx_bytes += burst[i]->pkt_len;
      FramePool::free(burst[i]);
    }
    taken += over;
  }
  return taken;
}

}  // namespace rocemu::dpdk_io
