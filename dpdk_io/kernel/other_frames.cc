#include "dpdk_io/kernel/other_frames.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/byte_order.h"
#include "base/net/checksum.h"
#include "dpdk_io/kernel/packet_description.h"
#include "dpdk_io/kernel/port_filter.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kVlanTagBytes = 4;
// The kernel's default buffer has room for fewer.
constexpr unsigned kMostLeft = 16384;
constexpr unsigned kMacsBytes = 2 * ETH_ALEN;

struct VlanTag {
  uint16_t type;
  uint16_t control;
};

// The tag that the kernel has taken out of the frame.
std::optional<VlanTag> vlan_tag_of(msghdr& message) {
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_level != SOL_PACKET ||
      control->cmsg_type != PACKET_AUXDATA)
    return std::nullopt;
  tpacket_auxdata data;
  std::memcpy(&data, CMSG_DATA(control), sizeof data);
  if ((data.tp_status & TP_STATUS_VLAN_VALID) == 0) return std::nullopt;
  const bool has_type = (data.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
  return VlanTag{has_type ? data.tp_vlan_tpid : uint16_t{ETHERTYPE_VLAN}, data.tp_vlan_tci};
}

void put_in(rte_mbuf& frame, const VlanTag& tag) {
  char* const start = rte_pktmbuf_prepend(&frame, kVlanTagBytes);
  if (start == nullptr) return;
  std::memmove(start, start + kVlanTagBytes, kMacsBytes);
  auto* const bytes = reinterpret_cast<uint8_t*>(start + kMacsBytes);
  store_be16(bytes, tag.type);
  store_be16(bytes + 2, tag.control);
}

// The field holds the sum of the pseudo header so far.
void complete_checksum(rte_mbuf& frame, const PacketDescription& description) {
  const unsigned start = description.csum_start;
  const unsigned field = start + description.csum_offset;
  if (field + 2 > frame.data_len) return;
  auto* const bytes = rte_pktmbuf_mtod(&frame, uint8_t*);
  const uint16_t sum = internet_checksum(sum16(bytes + start, size_t{frame.data_len} - start));
  store_be16(bytes + field, sum == 0 ? uint16_t{0xffff} : sum);  // 0 says that UDP has none
}

}  // namespace

int OtherFrames::start(unsigned interface_index, uint16_t udp_port) noexcept {
  if (started_) return 0;
  if (const int error = socket_ ? 0 : open(interface_index)) return error;
  drain();
  if (!attach_port_filter(socket_.get(), udp_port, Passed::others)) return errno;
  started_ = true;
  return 0;
}

void OtherFrames::stop() noexcept {
  if (!started_) return;
  started_ = false;
  attach_port_filter(socket_.get(), 0, Passed::nothing);
  drain();
}

// A frame may have been behind the last filter already. One of a kind that the description has no
// word for is an error, and gone; so is what the interface has come to meanwhile.
void OtherFrames::drain() noexcept {
  char beginning[PacketDescription::kBytes];
  for (unsigned i = 0; i < kMostLeft; ++i)
    if (::recv(socket_.get(), beginning, sizeof beginning, MSG_DONTWAIT) < 0 && errno == EAGAIN)
      return;
}

// It gets nothing yet.
int OtherFrames::open(unsigned interface_index) noexcept {
  UniqueFd opened(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!opened) return errno;
  const int fd = opened.get();
  const int on = 1;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(interface_index);
  if (::setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) != 0 ||
      !attach_port_filter(fd, 0, Passed::nothing) ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno;
  socket_ = std::move(opened);
  return 0;
}

unsigned OtherFrames::receive(std::span<rte_mbuf*> burst, PortStats& stats) noexcept {
  unsigned count = 0;
  while (count < burst.size()) {
    rte_mbuf* const frame = pool_.allocate();
    if (frame == nullptr) break;
    if (!receive_into(*frame, stats)) {
      FramePool::free(frame);
      break;
    }
    ++stats.rx_frames;
    stats.rx_bytes += frame->pkt_len;
    burst[count++] = frame;
  }
  return count;
}

// False when there is none. A packet that cannot be a frame is counted and passed over.
bool OtherFrames::receive_into(rte_mbuf& frame, PortStats& stats) noexcept {
  for (;;) {
    PacketDescription description;
    const unsigned room_bytes = rte_pktmbuf_tailroom(&frame);
    iovec parts[] = {{&description, sizeof description},
                     {rte_pktmbuf_mtod(&frame, void*), room_bytes}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(tpacket_auxdata))];
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_TRUNC);
    if (bytes < 0 && errno != EINVAL) return false;
    const ssize_t frame_bytes = bytes - ssize_t{PacketDescription::kBytes};
    if (frame_bytes < ETH_HLEN || frame_bytes > room_bytes) {
      ++stats.dropped(DropReason::malformed);
      continue;
    }
    rte_pktmbuf_append(&frame, static_cast<uint16_t>(frame_bytes));
    if ((description.flags & PacketDescription::kNeedsChecksum) != 0)
      complete_checksum(frame, description);
    if (const auto tag = vlan_tag_of(message)) put_in(frame, *tag);
    return true;
  }
}

}  // namespace rocemu::dpdk_io
