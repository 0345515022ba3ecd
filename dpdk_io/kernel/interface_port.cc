#include "dpdk_io/kernel/interface_port.h"

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "dpdk_io/kernel/socket_buffers.h"
#include "dpdk_io/kernel/udp_port_reservation.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kDescriptionBytes = 10;
constexpr uint8_t kNeedsChecksum = 1;  // VIRTIO_NET_HDR_F_NEEDS_CSUM
constexpr uint8_t kGsoUdpL4 = 5;       // VIRTIO_NET_HDR_GSO_UDP_L4

constexpr char kPrivileges[] =
    "a port on a network interface needs CAP_NET_RAW: run as root, or in a network of its own "
    "(unshare -Urn), or use udp:ADDRESS, which needs no privilege";

std::runtime_error error(const std::string& interface, const std::string& why) {
  return std::runtime_error("interface " + interface + ": " + why);
}

// Passes datagrams to one UDP port that came in for this machine, whole ones (a fragment cannot be
// used). No IPv4 options, no IPv6 extension headers, no VLAN tag: those frames are the kernel's.
bool attach_filter(int fd, uint16_t udp_port) {
  constexpr uint32_t kPacketType = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
  constexpr uint32_t kTagged = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT);
  constexpr uint32_t kEthernet = 14;
  constexpr uint32_t kIpv4 = 20;
  constexpr uint32_t kIpv6 = 40;
  constexpr uint32_t kFragment = 0x3fff;  // more fragments, offset
  constexpr uint32_t kIpv4NoOptions = 0x45;
  // Offsets of jumps count from the next instruction: when true, when false.
  sock_filter code[] = {
      /*  0 */ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kPacketType),
      /*  1 */ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, PACKET_MULTICAST, 18, 0),
      /*  2 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kTagged),
      /*  3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 16),
      /*  4 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
      /*  5 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 9, 0),
      /*  6 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 13),
      /*  7 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + 6),
      /*  8 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kFragment, 11, 0),
      /*  9 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet),
      /* 10 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIpv4NoOptions, 0, 9),
      /* 11 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 9),
      /* 12 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 7),
      /* 13 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv4 + 2),
      /* 14 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 4, 5),
      /* 15 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEthernet + 6),
      /* 16 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
      /* 17 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kEthernet + kIpv6 + 2),
      /* 18 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 0, 1),
      /* 19 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      /* 20 */ BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{sizeof code / sizeof code[0], code};
  return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

}  // namespace

// With PACKET_VNET_HDR this stands in front of each packet, either way: struct virtio_net_hdr of
// linux/virtio_net.h, which is no C++.
struct InterfacePort::Description {
  uint8_t flags;
  uint8_t gso_type;
  uint16_t hdr_len;
  uint16_t gso_size;
  uint16_t csum_start;
  uint16_t csum_offset;
};

// A Start stands in front of a batch's payloads, or of a frame.
struct InterfacePort::Start {
  Description description;
  std::array<std::byte, kMaxHeadersBytes> headers;
};

InterfacePort::InterfacePort(const std::string& interface, uint16_t udp_port, FramePool& pool,
                             const IdentificationSeal& seal)
    : seal_(seal),
      receiver_(pool, kDescriptionBytes, true, ETH_HLEN + 20 + sizeof(udphdr)),
      starts_(GsoSender::kBurst) {
  static_assert(sizeof(Description) == kDescriptionBytes);
  // A socket of no protocol gets nothing before its filter is there.
  socket_ = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) throw error(interface, errno == EPERM ? kPrivileges : std::strerror(errno));
  reservation_ = reserve_udp_port(interface, udp_port);
  open(interface, udp_port);
}

void InterfacePort::open(const std::string& interface, uint16_t udp_port) {
  const auto check = [&](bool done, const char* what) {
    if (!done) throw error(interface, std::string(what) + ": " + std::strerror(errno));
  };
  const int fd = socket_.get();
  const int on = 1;
  check(::setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) == 0, "packet socket");
  ::setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);  // the filter does it, too
  check(attach_filter(fd, udp_port), "socket filter");
  enlarge_buffers(fd);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  check(address.sll_ifindex != 0 &&
            ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
        "packet socket");
}

InterfacePort::~InterfacePort() = default;

unsigned InterfacePort::receive_buffer_bytes() const noexcept {
  return dpdk_io::receive_buffer_bytes(socket_.get());
}

unsigned InterfacePort::receive(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  unsigned count = receiver_.pop(burst);
  if (count == burst.size()) return count;
  const std::span<mmsghdr> messages = receiver_.prepare();
  if (messages.empty()) return count;
  const int arrived = ::recvmmsg(socket_.get(), messages.data(),
                                 static_cast<unsigned>(messages.size()), MSG_DONTWAIT, nullptr);
  // The packet was of a kind that the description has no word for, and is gone.
  if (arrived < 0 && errno == EINVAL) ++stats_.dropped(DropReason::malformed);
  for (int i = 0; i < arrived; ++i) {
    const auto slot = static_cast<unsigned>(i);
    Description description;
    std::memcpy(&description, receiver_.prefix(slot), sizeof description);
    const bool batch = description.gso_type == kGsoUdpL4;
    count = receiver_.take({slot, messages[slot].msg_len, batch ? description.gso_size : 0u, {}},
                           burst, count, seal_, stats_);
  }
  return count;
}

unsigned InterfacePort::batch_from(std::span<rte_mbuf* const> burst) const noexcept {
  const bool fits = burst[0]->data_len - unsigned{ETH_HLEN} <= longest_in_batch_bytes_;
  return fits && kernel_has_gso() ? gso_batch_frames(burst) : 1;
}

unsigned InterfacePort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  return sender_.send(socket_.get(), now_ns, burst, stats_);
}

// A batch has its description, headers of its own, and then the payloads of its frames.
void InterfacePort::compose(unsigned place, std::span<rte_mbuf* const> batch,
                            msghdr& message) noexcept {
  Start& start = starts_[place];
  Description& description = start.description;
  description = {};
  const auto add_part = [&](void* from, size_t bytes) {
    message.msg_iov[message.msg_iovlen++] = {from, bytes};
  };
  add_part(&description, kDescriptionBytes);
  auto* const first = rte_pktmbuf_mtod(batch[0], std::byte*);
  if (batch.size() == 1) return add_part(first, batch[0]->data_len);

  const unsigned headers_bytes = headers_bytes_of({first, batch[0]->data_len});
  if (is_ipv4(first)) number_gso_batch(batch, identification_of(first), seal_);
  unsigned payload_bytes = 0;
  std::byte* const headers = start.headers.data();
  std::memcpy(headers, first, headers_bytes);
  add_part(headers, headers_bytes);
  for (rte_mbuf* frame : batch) {
    const unsigned length = frame->data_len - headers_bytes;
    add_part(rte_pktmbuf_mtod(frame, std::byte*) + headers_bytes, length);
    payload_bytes += length;
  }
  write_gso_lengths(headers, headers_bytes, payload_bytes);
  description.flags = kNeedsChecksum;
  description.gso_type = kGsoUdpL4;
  description.hdr_len = static_cast<uint16_t>(headers_bytes);
  description.gso_size = static_cast<uint16_t>(batch[0]->data_len - headers_bytes);
  description.csum_start = static_cast<uint16_t>(headers_bytes - sizeof(udphdr));
  description.csum_offset = offsetof(udphdr, check);
}

}  // namespace rocemu::dpdk_io
