#include "dpdk_io/ethdev/ethdev_port.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "dpdk_io/ethdev/vlan_tag.h"
#include "dpdk_io/ip_host/datagram_filter.h"
#include "dpdk_io/port/owed_icrc.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint64_t kShortestPauseNs = 20'000;
constexpr uint64_t kPauseDivisor = 4;  // a pause is this part of the time without traffic
// A full transmit queue that does not move for so long is that of another end that sleeps or hangs.
constexpr uint64_t kPatienceNs = 10'000'000;
constexpr unsigned kTaggedBurst = 64;

Bytes bytes_of(const rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len};
}

}  // namespace

EthdevPort::EthdevPort(EthernetDevice& device, const Settings& settings, FramePool& pool,
                       uint64_t seed)
    : device_(device),
      pool_(pool),
      vlan_id_(settings.vlan_id),
      udp_port_(settings.udp_port),
      longest_frame_bytes_(settings.longest_frame_bytes),
      longest_sent_bytes_(std::min(longest_frame_bytes_, device.longest_sent_bytes())),
      host_(device.mac(), settings.ip, seed),
      usable_(device.started()) {
  device_.let_in(host_.group_macs());
}

IpHost::Answer EthdevPort::resolve(uint64_t now_ns, const IpAddress& destination) {
  const IpHost::Answer answer = host_.resolve(now_ns, destination);
  run_host(now_ns);
  return answer;
}

void EthdevPort::set_groups(uint64_t now_ns, std::set<IpAddress> groups) {
  host_.set_groups(now_ns, std::move(groups));
  device_.let_in(host_.group_macs());
  run_host(now_ns);
}

void EthdevPort::on_link_up(uint64_t now_ns) {
  host_.on_link_up(now_ns);
  run_host(now_ns);
}

unsigned EthdevPort::receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  unsigned kept = 0;
  if (usable_) [[likely]] {
    const unsigned arrived = device_.receive(burst);
    for (rte_mbuf* frame : burst.first(arrived))
      if (take_in(now_ns, frame)) burst[kept++] = frame;
    more_waits_ = arrived == burst.size();
    if (arrived != 0) last_traffic_ns_ = now_ns;
  }
  run_host(now_ns);
  if (device_.receive_fd() < 0)
    next_look_ns_ = now_ns + std::clamp((now_ns - last_traffic_ns_) / kPauseDivisor,
                                        kShortestPauseNs, kLongestPauseNs);
  return kept;
}

// Keeps what is the NIC's; everything else is seen to and freed.
bool EthdevPort::take_in(uint64_t now_ns, rte_mbuf* frame) {
  disclaim(frame);
  if (frame->pkt_len > longest_frame_bytes_ + (vlan_id_ != 0 ? kVlanTagBytes : 0) ||
      frame->pkt_len < kEthernetBytes ||
      (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) != 0)) {
    drop(frame, DropReason::malformed);
    return false;
  }
  if (vlan_id_ != 0) {
    if (!has_vlan_tag(frame, vlan_id_)) {
      FramePool::free(frame);
      return false;
    }
    remove_vlan_tag(frame);
  }
  const Bytes bytes = bytes_of(frame);
  const bool is_datagram = is_datagram_to(udp_port_, bytes);
  if (!is_datagram) [[unlikely]]
    host_.on_frame(now_ns, bytes);
  const MacAddress to = destination_of(bytes);
  if ((is_datagram || wants_others_) && (to == device_.mac() || is_group(to))) [[likely]] {
    ++stats_.rx_frames;
    stats_.rx_bytes += bytes.size();
    return true;
  }
  FramePool::free(frame);
  return false;
}

void EthdevPort::run_host(uint64_t now_ns) {
  if (host_.next_deadline() <= now_ns) host_.on_timeout(now_ns);
  while (host_.wants_to_send()) send_own(host_.next_frame());
}

void EthdevPort::send_own(const Frame& frame) noexcept {
  rte_mbuf* mbuf = usable_ ? pool_.allocate() : nullptr;
  if (mbuf == nullptr) return;
  char* const start = rte_pktmbuf_append(mbuf, static_cast<uint16_t>(frame.size()));
  if (start == nullptr) return FramePool::free(mbuf);
  std::memcpy(start, frame.data(), frame.size());
  if (hand_over({&mbuf, 1}) == 0) FramePool::free(mbuf);
}

unsigned EthdevPort::hand_over(std::span<rte_mbuf*> burst) noexcept {
  return vlan_id_ == 0 ? device_.transmit(burst) : hand_over_tagged(burst);
}

// Frames that somebody else holds as well are copied, since a tag changes them. Frames that the
// device does not take get back to what they were.
unsigned EthdevPort::hand_over_tagged(std::span<rte_mbuf*> burst) noexcept {
  std::array<rte_mbuf*, kTaggedBurst> tagged;
  unsigned count = 0;
  for (; count < std::min<size_t>(burst.size(), kTaggedBurst); ++count) {
    rte_mbuf* frame = burst[count];
    if (rte_mbuf_refcnt_read(frame) > 1) {
      frame = rte_pktmbuf_copy(frame, pool_.mempool(), 0, UINT32_MAX);
      if (frame == nullptr) break;
    }
    if (!insert_vlan_tag(frame, vlan_id_)) {
      if (frame != burst[count]) FramePool::free(frame);
      break;
    }
    tagged[count] = frame;
  }
  const unsigned taken = device_.transmit({tagged.data(), count});
  for (unsigned i = 0; i < count; ++i) {
    const bool copied = tagged[i] != burst[i];
    if (i < taken && copied) {
      FramePool::free(burst[i]);
    } else if (i >= taken && copied) {
      FramePool::free(tagged[i]);
    } else if (i >= taken) {
      remove_vlan_tag(tagged[i]);
    }
  }
  return taken;
}

unsigned EthdevPort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (burst.empty()) return 0;
  last_traffic_ns_ = now_ns;
  const auto lose = [&](DropReason reason) {
    for (rte_mbuf* frame : burst) drop(frame, reason);
    return static_cast<unsigned>(burst.size());
  };
  if (!usable_) [[unlikely]]
    return lose(DropReason::refused_by_kernel);
  // A raw packet QP sends what it likes.
  if (burst.front()->pkt_len > longest_sent_bytes_) [[unlikely]] {
    drop(burst.front(), DropReason::refused_by_kernel);
    return 1;
  }
  uint64_t bytes = 0;
  std::array<uint32_t, kTaggedBurst> lengths;
  size_t count = 0;
  for (; count < std::min<size_t>(burst.size(), lengths.size()); ++count) {
    lengths[count] = burst[count]->pkt_len;
    if (lengths[count] > longest_sent_bytes_) [[unlikely]]
      break;
  }
  const unsigned taken = hand_over(burst.first(count));
  for (unsigned i = 0; i < taken; ++i) bytes += lengths[i];
  stats_.tx_frames += taken;
  stats_.tx_bytes += bytes;
  if (taken != 0) [[likely]] {
    stuck_since_ns_ = kNever;
    return taken;
  }
  stuck_since_ns_ = std::min(stuck_since_ns_, now_ns);
  return now_ns - stuck_since_ns_ > kPatienceNs ? lose(DropReason::queue_full) : 0;
}

uint64_t EthdevPort::next_arrival_ns() const noexcept {
  return std::min(host_.next_deadline(), usable_ ? next_look_ns_ : kNever);
}

void EthdevPort::drop(rte_mbuf* frame, DropReason reason) noexcept {
  ++stats_.dropped(reason);
  FramePool::free(frame);
}

}  // namespace rocemu::dpdk_io
