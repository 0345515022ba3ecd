#include "dpdk_io/kernel/udp_socket.h"

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

#include "base/net/text.h"
#include "dpdk_io/kernel/socket_address.h"
#include "dpdk_io/kernel/socket_buffers.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint8_t kDefaultHopLimit = 64;
constexpr unsigned kEthernetBytes = sizeof(rte_ether_hdr);
constexpr unsigned kUdpBytes = sizeof(rte_udp_hdr);

void demand(int fd, int level, int name, int value, const IpAddress& address) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0)
    throw std::runtime_error("UDP socket of " + to_text(address) + ": " + std::strerror(errno));
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

// Room for the control messages of one datagram or batch: traffic class, hop limit, and the length
// of the batch's payloads.
constexpr size_t kControlBytes = 3 * CMSG_SPACE(sizeof(int));

template <typename Value>
void add_control(msghdr& message, int level, int type, Value value) {
  auto* const header =
      reinterpret_cast<cmsghdr*>(static_cast<char*>(message.msg_control) + message.msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(header), &value, sizeof value);
  message.msg_controllen += CMSG_SPACE(sizeof value);
}

// The kernel's description of a datagram or batch that has come.
struct Arrival {
  unsigned segment_bytes = 0;  // the payload of each frame of a batch; 0: it is a single frame
  uint8_t traffic_class = 0;
};

Arrival describe(msghdr& message) {
  Arrival arrival;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    int value = 0;
    const size_t bytes = std::min(sizeof value, header->cmsg_len - CMSG_LEN(0));
    std::memcpy(&value, CMSG_DATA(header), bytes);  // a TOS has one byte
    if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
      arrival.segment_bytes = value > 0 ? static_cast<unsigned>(value) : 0;
    } else if ((header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS) ||
               (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS)) {
      arrival.traffic_class = static_cast<uint8_t>(value);
    }
  }
  return arrival;
}

}  // namespace

struct UdpSocket::Control {
  alignas(cmsghdr) char bytes[kControlBytes];
};

// An envelope is all that a message bears besides its payloads.
struct UdpSocket::Envelope {
  SocketAddress destination;
  Control control;
};

UdpSocket::UdpSocket(const IpAddress& address, uint16_t udp_port, unsigned interface_index,
                     FramePool& pool, const IdentificationSeal& seal)
    : address_(address),
      udp_port_(udp_port),
      interface_index_(interface_index),
      seal_(seal),
      ipv4_(address.is_ipv4()),
      fd_(::socket(ipv4_ ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      receiver_(pool, 0, false, headers_bytes()),
      envelopes_(GsoSender::kBurst) {
  if (!fd_)
    throw std::runtime_error("UDP socket of " + to_text(address) + ": " + std::strerror(errno));
  const int fd = fd_.get();
  if (ipv4_) {
    demand(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, address);
    demand(fd, IPPROTO_IP, IP_TTL, kDefaultHopLimit, address);
    demand(fd, IPPROTO_IP, IP_RECVTOS, 1, address);
  } else {
    demand(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, address);
    demand(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, address);
    demand(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kDefaultHopLimit, address);
    demand(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, address);
    // RoCE senders leave the UDP checksum out (IBTA annex A17), which IPv6 sockets refuse
    // otherwise.
    demand(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, address);
  }
  const int batches = 1;
  if (kernel_has_gso()) ::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &batches, sizeof batches);
  enlarge_buffers(fd);
  const SocketAddress local = to_socket_address(address, udp_port, interface_index);
  if (::bind(fd, local.get(), local.length) != 0) throw bind_error(address, udp_port, errno);
}

UdpSocket::~UdpSocket() = default;

unsigned UdpSocket::receive_buffer_bytes() const noexcept {
  return dpdk_io::receive_buffer_bytes(fd_.get());
}

unsigned UdpSocket::headers_bytes() const noexcept {
  return kEthernetBytes + (ipv4_ ? sizeof(rte_ipv4_hdr) : sizeof(rte_ipv6_hdr)) + kUdpBytes;
}

// ---- receiving ----

unsigned UdpSocket::receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept {
  unsigned count = receiver_.pop(burst);
  if (count == burst.size()) return count;
  const std::span<mmsghdr> messages = receiver_.prepare();
  std::array<Control, GsoReceiver::kSlots> controls;
  for (size_t i = 0; i < messages.size(); ++i) {
    msghdr& message = messages[i].msg_hdr;
    message.msg_name = &sources_[i];
    message.msg_namelen = sizeof sources_[i];
    message.msg_control = controls[i].bytes;
    message.msg_controllen = sizeof controls[i].bytes;
  }
  if (messages.empty()) return count;
  const int arrived = ::recvmmsg(fd_.get(), messages.data(), static_cast<unsigned>(messages.size()),
                                 MSG_DONTWAIT, nullptr);
  filled_ = arrived == static_cast<int>(messages.size());
  for (int i = 0; i < arrived; ++i) {
    const auto slot = static_cast<unsigned>(i);
    alignas(8) Headers headers;
    const Arrival arrival = describe(messages[slot].msg_hdr);
    write_headers(headers, sources_[slot], arrival.traffic_class);
    count = receiver_.take({slot, messages[slot].msg_len, arrival.segment_bytes,
                            std::span(headers).first(headers_bytes())},
                           burst, count, seal_, stats);
  }
  return count;
}

// Fills in all but the lengths.
void UdpSocket::write_headers(Headers& headers, const sockaddr_storage& from,
                              uint8_t traffic_class) const noexcept {
  headers = {};
  auto* const ethernet = reinterpret_cast<rte_ether_hdr*>(headers.data());
  auto* const l3 = reinterpret_cast<std::byte*>(ethernet + 1);
  uint16_t source_port;
  if (ipv4_) {
    const auto& source = reinterpret_cast<const sockaddr_in&>(from);
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
    auto& ip = *reinterpret_cast<rte_ipv4_hdr*>(l3);
    ip.version_ihl = RTE_IPV4_VHL_DEF;
    ip.type_of_service = traffic_class;
    ip.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
    ip.time_to_live = kDefaultHopLimit;
    ip.next_proto_id = IPPROTO_UDP;
    ip.src_addr = source.sin_addr.s_addr;
    std::memcpy(&ip.dst_addr, address_.ipv4_bytes(), sizeof ip.dst_addr);
    source_port = source.sin_port;
  } else {
    const auto& source = reinterpret_cast<const sockaddr_in6&>(from);
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
    auto& ip = *reinterpret_cast<rte_ipv6_hdr*>(l3);
    ip.vtc_flow = rte_cpu_to_be_32(6u << 28 | uint32_t{traffic_class} << 20);
    ip.proto = IPPROTO_UDP;
    ip.hop_limits = kDefaultHopLimit;
    std::memcpy(&ip.src_addr, &source.sin6_addr, sizeof ip.src_addr);
    std::memcpy(&ip.dst_addr, address_.bytes.data(), sizeof ip.dst_addr);
    source_port = source.sin6_port;
  }
  auto& udp = *reinterpret_cast<rte_udp_hdr*>(&headers[headers_bytes() - kUdpBytes]);
  udp.src_port = source_port;
  udp.dst_port = rte_cpu_to_be_16(udp_port_);
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

unsigned UdpSocket::send(uint64_t now_ns, std::span<rte_mbuf* const> burst,
                         PortStats& stats) noexcept {
  return sender_.send(fd_.get(), now_ns, burst, stats);
}

unsigned UdpSocket::batch_from(std::span<rte_mbuf* const> burst) const noexcept {
  return kernel_has_gso() ? gso_batch_frames(burst) : 1;
}

void UdpSocket::compose(unsigned place, std::span<rte_mbuf* const> batch,
                        msghdr& message) noexcept {
  if (ipv4_) number_gso_batch(batch, 0, seal_);  // the kernel counts from 0
  for (rte_mbuf* frame : batch)
    message.msg_iov[message.msg_iovlen++] = {rte_pktmbuf_mtod(frame, std::byte*) + headers_bytes(),
                                             frame->data_len - headers_bytes()};

  Envelope& envelope = envelopes_[place];
  const auto* const start = rte_pktmbuf_mtod(batch[0], const std::byte*);
  const std::byte* const l3 = start + kEthernetBytes;
  uint8_t traffic_class, hop_limit;
  uint16_t port;
  std::memcpy(&port, start + headers_bytes() - kUdpBytes + offsetof(rte_udp_hdr, dst_port), 2);
  port = rte_be_to_cpu_16(port);
  if (ipv4_) {
    const auto& ip = *reinterpret_cast<const rte_ipv4_hdr*>(l3);
    traffic_class = ip.type_of_service;
    hop_limit = ip.time_to_live;
    envelope.destination = to_socket_address(IpAddress::of_ipv4(&ip.dst_addr), port, 0);
  } else {
    const auto& ip = *reinterpret_cast<const rte_ipv6_hdr*>(l3);
    traffic_class = static_cast<uint8_t>(rte_be_to_cpu_32(ip.vtc_flow) >> 20);
    hop_limit = ip.hop_limits;
    envelope.destination =
        to_socket_address(IpAddress::of_ipv6(&ip.dst_addr), port, interface_index_);
  }
  message.msg_name = &envelope.destination.storage;
  message.msg_namelen = envelope.destination.length;
  message.msg_control = envelope.control.bytes;
  if (traffic_class != 0 || hop_limit != kDefaultHopLimit) {
    const int level = ipv4_ ? IPPROTO_IP : IPPROTO_IPV6;
    add_control<int>(message, level, ipv4_ ? IP_TOS : IPV6_TCLASS, traffic_class);
    add_control<int>(message, level, ipv4_ ? IP_TTL : IPV6_HOPLIMIT, hop_limit);
  }
  if (batch.size() > 1)
    add_control<uint16_t>(message, IPPROTO_UDP, UDP_SEGMENT,
                          static_cast<uint16_t>(message.msg_iov[0].iov_len));
  if (message.msg_controllen == 0) message.msg_control = nullptr;
}

}  // namespace rocemu::dpdk_io
