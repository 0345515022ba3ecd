#include "emulator/daemon/engine/port_frame_sink.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rocemu::daemon {

namespace {

constexpr std::byte kGroupBit{1};  // in a MAC's first byte (IEEE 802-2014, 8.2.2)

}  // namespace

PortFrameSink::~PortFrameSink() {
  dpdk_io::FramePool::free_bulk({burst_.data(), waiting_});
  dpdk_io::FramePool::free_bulk({own_multicast_.data(), looped_back_});
}

unsigned PortFrameSink::receive(TimeNs now, transport::Endpoint& endpoint,
                                TurnBudget& budget) noexcept {
  std::array<rte_mbuf*, kBurst> frames;
  std::array<std::span<const std::byte>, kBurst> bytes;
  unsigned total = 0;
  if (looped_back_ != 0) [[unlikely]]
    total = receive_looped_back(now, endpoint);
  unread_ = false;
  for (;;) {
    const unsigned count = port_->receive(now, frames);
    if (count == 0) break;
    for (unsigned i = 0; i < count; ++i)
      bytes[i] = {rte_pktmbuf_mtod(frames[i], const std::byte*), rte_pktmbuf_data_len(frames[i])};
    endpoint.on_frames(now, {bytes.data(), count});
    dpdk_io::FramePool::free_bulk({frames.data(), count});
    total += count;
    budget.charge(count);
    if (count < kBurst && !port_->has_work()) break;
    unread_ = total >= kReceiveBudget || budget.spent();
    if (unread_) break;
  }
  return total;
}

unsigned PortFrameSink::receive_looped_back(TimeNs now, transport::Endpoint& endpoint) noexcept {
  const unsigned count = looped_back_;
  for (unsigned i = 0; i < count; ++i) {
    const rte_mbuf* frame = own_multicast_[i];
    const std::span bytes(rte_pktmbuf_mtod(frame, const std::byte*), rte_pktmbuf_data_len(frame));
    endpoint.on_frames(now, {&bytes, 1});
  }
  dpdk_io::FramePool::free_bulk({own_multicast_.data(), count});
  looped_back_ = 0;
  return count;
}

// When there is no room the frame is lost here, as any datagram may be.
void PortFrameSink::loop_back(rte_mbuf* frame) noexcept {
  if (looped_back_ == kBurst) return;
  rte_mbuf_refcnt_update(frame, 1);
  own_multicast_[looped_back_++] = frame;
}

unsigned PortFrameSink::transmit(TimeNs now, transport::Endpoint& endpoint) noexcept {
  sent_ = 0;
  if (waiting_ != 0) hand_to_port(now);
  if (!queued_.empty()) send_queued(now);
  if (waiting_ == 0 && endpoint.wants_transmit()) {
    endpoint.transmit(now, *this, kBurst);
    hand_to_port(now);
  }
  return sent_;
}

bool PortFrameSink::queue(std::vector<std::byte> frame) {
  if (queued_.size() >= kMaxQueued || frame.size() > transport::kMaxFrameBytes) return false;
  queued_.push_back(std::move(frame));
  return true;
}

void PortFrameSink::send_queued(TimeNs now) noexcept {
  transport::FrameBuffer buffer;
  while (!queued_.empty() && allocate(buffer)) {
    const std::vector<std::byte>& frame = queued_.front();
    std::copy(frame.begin(), frame.end(), buffer.data);
    send(buffer, static_cast<uint32_t>(frame.size()));
    queued_.pop_front();
  }
  hand_to_port(now);
}

bool PortFrameSink::allocate(transport::FrameBuffer& buffer) noexcept {
  if (waiting_ + being_built_ == kBurst) return false;
  rte_mbuf* frame = pool_.allocate();
  if (frame == nullptr) return false;
  ++being_built_;
  buffer.data = rte_pktmbuf_mtod(frame, std::byte*);
  buffer.handle = frame;
  return true;
}

void PortFrameSink::send(const transport::FrameBuffer& buffer, uint32_t length_bytes) noexcept {
  auto* frame = static_cast<rte_mbuf*>(buffer.handle);
  frame->data_len = static_cast<uint16_t>(length_bytes);
  frame->pkt_len = length_bytes;
  --being_built_;
  burst_[waiting_++] = frame;
  if (std::to_integer<unsigned>(*buffer.data & kGroupBit) != 0) [[unlikely]]
    loop_back(frame);
}

void PortFrameSink::discard(const transport::FrameBuffer& buffer) noexcept {
  --being_built_;
  dpdk_io::FramePool::free(static_cast<rte_mbuf*>(buffer.handle));
}

void PortFrameSink::hand_to_port(TimeNs now) noexcept {
  const unsigned taken = port_->transmit(now, {burst_.data(), waiting_});
  std::copy(burst_.begin() + taken, burst_.begin() + waiting_, burst_.begin());
  waiting_ -= taken;
  sent_ += taken;
}

}  // namespace rocemu::daemon
