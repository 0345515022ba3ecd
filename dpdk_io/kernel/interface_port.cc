#include "dpdk_io/kernel/interface_port.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <rte_mbuf.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "dpdk_io/ip_host/datagram_filter.h"
#include "dpdk_io/kernel/packet_description.h"
#include "dpdk_io/kernel/port_filter.h"
#include "dpdk_io/kernel/socket_buffers.h"
#include "dpdk_io/kernel/udp_port_reservation.h"

namespace rocemu::dpdk_io {
namespace {

constexpr char kPrivileges[] =
    "a port on a network interface needs CAP_NET_RAW: run as root, or in a network of its own "
    "(unshare -Urn), or use udp:ADDRESS, which needs no privilege";

std::runtime_error error(const std::string& interface, const std::string& why) {
  return std::runtime_error("interface " + interface + ": " + why);
}

}  // namespace

// A Start stands in front of a batch's payloads, or of a frame.
struct InterfacePort::Start {
  PacketDescription description;
  std::array<std::byte, kMaxHeadersBytes> headers;
};

InterfacePort::InterfacePort(const std::string& interface, uint16_t udp_port, FramePool& pool,
                             const IdentificationSeal& seal)
    : udp_port_(udp_port),
      seal_(seal),
      others_(pool),
      arrivals_(::epoll_create1(EPOLL_CLOEXEC)),
      receiver_(pool, PacketDescription::kBytes, true, ETH_HLEN + 20 + sizeof(udphdr)),
      starts_(GsoSender::kBurst) {
  // A socket of no protocol gets nothing before its filter is there.
  socket_ = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) throw error(interface, errno == EPERM ? kPrivileges : std::strerror(errno));
  reservation_ = reserve_udp_port(interface, udp_port);
  open(interface);
}

void InterfacePort::open(const std::string& interface) {
  const auto check = [&](bool done, const char* what) {
    if (!done) throw error(interface, std::string(what) + ": " + std::strerror(errno));
  };
  const int fd = socket_.get();
  const int on = 1;
  check(::setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) == 0, "packet socket");
  ::setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);  // the filter does it, too
  check(attach_port_filter(fd, udp_port_, Passed::datagrams), "socket filter");
  enlarge_buffers(fd);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  interface_index_ = ::if_nametoindex(interface.c_str());
  address.sll_ifindex = static_cast<int>(interface_index_);
  check(address.sll_ifindex != 0 &&
            ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
        "packet socket");
  check(watch(fd), "epoll");
}

bool InterfacePort::watch(int fd) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(arrivals_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Without the socket, for which there may be no descriptor left, raw packet QPs get nothing.
void InterfacePort::want_other_frames(bool wanted) noexcept {
  if (wanted && others_.start(interface_index_, udp_port_) == 0) {
    watch(others_.fd());
  } else if (!wanted && others_.started()) {
    // Whatever comes up there by itself, as ENETDOWN, wakes nobody.
    ::epoll_ctl(arrivals_.get(), EPOLL_CTL_DEL, others_.fd(), nullptr);
    others_.stop();
  }
}

InterfacePort::~InterfacePort() = default;

unsigned InterfacePort::receive_buffer_bytes() const noexcept {
  return dpdk_io::receive_buffer_bytes(socket_.get());
}

unsigned InterfacePort::receive(uint64_t, std::span<rte_mbuf*> burst) noexcept {
  unsigned count = 0;
  // In turn before the port's own frames and behind them, lest either waits for ever.
  others_first_ = others_.started() && !others_first_;
  if (others_first_) [[unlikely]]
    count = others_.receive(burst, stats_);
  count += receiver_.pop(burst.subspan(count));
  if (count == burst.size()) return count;
  const std::span<mmsghdr> messages = receiver_.prepare();
  if (messages.empty()) return count;
  const int arrived = ::recvmmsg(socket_.get(), messages.data(),
                                 static_cast<unsigned>(messages.size()), MSG_DONTWAIT, nullptr);
  filled_ = arrived == static_cast<int>(messages.size());
  // The packet was of a kind that the description has no word for, and is gone.
  if (arrived < 0 && errno == EINVAL) ++stats_.dropped(DropReason::malformed);
  for (int i = 0; i < arrived; ++i) {
    const auto slot = static_cast<unsigned>(i);
    PacketDescription description;
    std::memcpy(&description, receiver_.prefix(slot), sizeof description);
    const bool batch = description.gso_type == PacketDescription::kGsoUdpL4;
    count = receiver_.take({slot, messages[slot].msg_len, batch ? description.gso_size : 0u, {}},
                           burst, count, seal_, stats_);
  }
  if (others_.started() && !others_first_) [[unlikely]]
    count += others_.receive(burst.subspan(count), stats_);
  return count;
}

const PortStats& InterfacePort::stats() const noexcept {
  sum_ = stats_;
  sum_.dropped(DropReason::queue_full) += overflows(socket_.get());
  return sum_;
}

unsigned InterfacePort::batch_from(std::span<rte_mbuf* const> burst) const noexcept {
  const Bytes first{rte_pktmbuf_mtod(burst[0], const uint8_t*), burst[0]->data_len};
  // Frames of raw packet QPs leave as they are.
  const bool fits =
      first.size() - ETH_HLEN <= longest_in_batch_bytes_ && is_datagram_to(udp_port_, first);
  return fits && kernel_has_gso() ? gso_batch_frames(burst) : 1;
}

unsigned InterfacePort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  return sender_.send(socket_.get(), now_ns, burst, stats_);
}

// A batch has its description, headers of its own, and then the payloads of its frames.
void InterfacePort::compose(unsigned place, std::span<rte_mbuf* const> batch,
                            msghdr& message) noexcept {
  Start& start = starts_[place];
  PacketDescription& description = start.description;
  description = {};
  const auto add_part = [&](void* from, size_t bytes) {
    message.msg_iov[message.msg_iovlen++] = {from, bytes};
  };
  add_part(&description, PacketDescription::kBytes);
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
  description.flags = PacketDescription::kNeedsChecksum;
  description.gso_type = PacketDescription::kGsoUdpL4;
  description.hdr_len = static_cast<uint16_t>(headers_bytes);
  description.gso_size = static_cast<uint16_t>(batch[0]->data_len - headers_bytes);
  description.csum_start = static_cast<uint16_t>(headers_bytes - sizeof(udphdr));
  description.csum_offset = offsetof(udphdr, check);
}

}  // namespace rocemu::dpdk_io
