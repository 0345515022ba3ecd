#include "dpdk_io/switch.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "dpdk_io/frame_queue.h"
#include "dpdk_io/pcap.h"

namespace rocemu::dpdk_io {
namespace {

constexpr unsigned kEthernetHeaderBytes = 14;

// A MAC as a number, its first byte lowest.
static_assert(std::endian::native == std::endian::little);
constexpr uint64_t kMacMask = 0xffff'ffff'ffff;
constexpr uint64_t kGroupBit = 0x01;  // IEEE 802-2014, 8.2.2: the first bit on the wire

uint64_t mac_of(const std::array<uint8_t, 6>& address) {
  uint64_t mac = 0;
  std::memcpy(&mac, address.data(), address.size());
  return mac;
}

uint64_t destination_of(const rte_mbuf* frame) {
  uint64_t first_bytes;
  std::memcpy(&first_bytes, rte_pktmbuf_mtod(frame, const std::byte*), sizeof first_bytes);
  return first_bytes & kMacMask;
}

bool well_formed(const rte_mbuf* frame) {
  return frame->nb_segs == 1 && frame->data_len >= kEthernetHeaderBytes;
}

}  // namespace

// The two directions of a link are one function each: transmit() for what leaves the device,
// deliver() for what the switch sends to it. What a link does to frames belongs there.
class SwitchPort final : public Port {
 public:
  SwitchPort(Switch& owner, std::string name, unsigned queue_frames)
      : switch_(owner), name_(std::move(name)), queue_(queue_frames) {}

  const std::string& name() const { return name_; }

  unsigned receive(std::span<rte_mbuf*> burst) noexcept override {
    const unsigned count = queue_.pop(burst);
    uint64_t bytes = 0;
    for (const rte_mbuf* frame : burst.first(count)) bytes += frame->pkt_len;
    stats_.rx_frames += count;
    stats_.rx_bytes += bytes;
    return count;
  }

  unsigned transmit(std::span<rte_mbuf*> burst) noexcept override {
    uint64_t bytes = 0;
    for (const rte_mbuf* frame : burst) bytes += frame->pkt_len;
    stats_.tx_frames += burst.size();
    stats_.tx_bytes += bytes;
    switch_.carry(*this, burst);
    return static_cast<unsigned>(burst.size());
  }

  void deliver(rte_mbuf* frame) noexcept {
    if (!queue_.push(frame)) drop(frame, DropReason::queue_full);
  }

  void drop(rte_mbuf* frame, DropReason reason) noexcept {
    ++stats_.dropped(reason);
    FramePool::free(frame);
  }

  int poll_fd() const noexcept override { return -1; }
  bool has_work() const noexcept override { return !queue_.empty(); }
  const PortStats& stats() const noexcept override { return stats_; }

 private:
  Switch& switch_;
  std::string name_;
  FrameQueue queue_;
  PortStats stats_;
};

Switch::Switch(FramePool& pool, unsigned queue_frames)
    : queue_frames_(std::clamp(queue_frames, 1u, pool.capacity())) {}

Switch::~Switch() = default;

Port& Switch::add_port(std::array<uint8_t, 6> address, std::string name) {
  const uint64_t mac = mac_of(address);
  if (mac == 0 || (mac & kGroupBit) != 0) {
    throw std::runtime_error("port " + name +
                             ": its MAC is zero or a group address; give it a unicast one");
  }
  if (const auto taken = std::ranges::find(macs_, mac); taken != macs_.end()) {
    throw std::runtime_error("port " + name + ": its MAC is that of port " +
                             ports_[static_cast<size_t>(taken - macs_.begin())]->name());
  }
  if (ports_.size() == kMaxPorts) {
    throw std::runtime_error("port " + name + ": the switch has " + std::to_string(kMaxPorts) +
                             " ports already");
  }
  ports_.push_back(std::make_unique<SwitchPort>(*this, std::move(name), queue_frames_));
  macs_.push_back(mac);
  last_mac_ = 0;
  last_port_ = nullptr;
  return *ports_.back();
}

void Switch::set_capture(PcapWriter* writer, Clock clock) {
  if (writer != nullptr && !clock) throw std::runtime_error("a capture needs a clock");
  capture_ = writer;
  capture_clock_ = std::move(clock);
}

void Switch::carry(SwitchPort& from, std::span<rte_mbuf*> burst) noexcept {
  if (capture_ != nullptr) [[unlikely]]
    record(burst);
  for (rte_mbuf* frame : burst) {
    if (well_formed(frame)) [[likely]] {
      forward(from, frame);
    } else {
      from.drop(frame, DropReason::malformed);
    }
  }
}

void Switch::forward(SwitchPort& from, rte_mbuf* frame) noexcept {
  const uint64_t mac = destination_of(frame);
  if ((mac & kGroupBit) != 0) return flood(from, frame);
  if (mac != last_mac_) {
    last_mac_ = mac;
    last_port_ = find(mac);
  }
  if (last_port_ != nullptr) [[likely]] {
    last_port_->deliver(frame);
  } else {
    from.drop(frame, DropReason::unknown_destination);
  }
}

void Switch::flood(SwitchPort& from, rte_mbuf* frame) noexcept {
  rte_mbuf_refcnt_update(frame, static_cast<int16_t>(ports_.size() - 1));
  for (const auto& port : ports_) {
    if (port.get() != &from) port->deliver(frame);
  }
  FramePool::free(frame);
}

void Switch::record(std::span<rte_mbuf*> burst) noexcept {
  const uint64_t now_ns = capture_clock_();
  for (const rte_mbuf* frame : burst) {
    capture_->write({rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len}, now_ns);
  }
}

SwitchPort* Switch::find(uint64_t mac) noexcept {
  const auto found = std::ranges::find(macs_, mac);
  return found == macs_.end() ? nullptr : ports_[static_cast<size_t>(found - macs_.begin())].get();
}

}  // namespace rocemu::dpdk_io
