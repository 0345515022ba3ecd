#include "dpdk_io/port/uplink_port.h"

#include <utility>

#include "network/mac.h"

namespace rocemu::dpdk_io {

using impairment::Direction;

UplinkPort::UplinkPort(std::unique_ptr<Port> wire, unsigned number, FramePool& pool)
    : wire_(std::move(wire)),
      arrived_(pool.capacity()),
      end_{network::PortLinks(number)},
      links_(*this, pool.capacity()) {}

void UplinkPort::set_mac(std::array<uint8_t, 6> mac) noexcept { mac_ = network::mac_number(mac); }

void UplinkPort::set_capture(FrameWriter* writer, Capture::Clock clock) {
  capture_.set(writer, std::move(clock));
}

unsigned UplinkPort::receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (links_.next_arrival() <= now_ns) [[unlikely]]
    links_.advance(now_ns);
  const bool impaired = end_.links.get(Direction::receive) != nullptr;
  if (impaired) [[unlikely]] {
    const unsigned count = wire_->receive(now_ns, burst);
    for (rte_mbuf* frame : burst.first(count)) come_in(now_ns, frame);
  }
  unsigned count = 0;
  if (!arrived_.empty()) [[unlikely]] {
    count = arrived_.pop(burst);
    if (count == burst.size()) return count;
  }
  if (impaired) return count;
  const unsigned arrived = wire_->receive(now_ns, burst.subspan(count));
  if (capture_.on()) [[unlikely]]
    for (rte_mbuf*& frame : burst.subspan(count, arrived)) capture_.record(std::span(&frame, 1));
  return count + arrived;
}

unsigned UplinkPort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (links_.next_arrival() <= now_ns) [[unlikely]]
    links_.advance(now_ns);
  if (end_.links.get(Direction::transmit) != nullptr) [[unlikely]] {
    for (rte_mbuf* frame : burst) links_.cross(end_, Direction::transmit, now_ns, frame);
    return static_cast<unsigned>(burst.size());
  }
  unsigned taken = 0;
  while (taken < burst.size()) {
    unsigned end = taken;
    while (end < burst.size() && !returns(burst[end])) ++end;
    if (end != taken) {
      taken += send(now_ns, burst.subspan(taken, end - taken));
      if (taken != end) return taken;
    }
    for (; taken < burst.size() && returns(burst[taken]); ++taken) turn_back(now_ns, burst[taken]);
  }
  return taken;
}

// A recorded frame is kept until the wire has taken it: what it refuses comes once more.
unsigned UplinkPort::send(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (!running_) [[unlikely]] {
    for (rte_mbuf* frame : burst) drop(frame, DropReason::refused_by_kernel);
    return static_cast<unsigned>(burst.size());
  }
  if (!capture_.on()) [[likely]]
    return wire_->transmit(now_ns, burst);
  for (unsigned taken = 0; taken < burst.size(); ++taken) {
    rte_mbuf* const frame = burst[taken];
    rte_mbuf_refcnt_update(frame, 1);
    const unsigned sent = wire_->transmit(now_ns, burst.subspan(taken, 1));
    if (sent == 1) capture_.record(std::span(&frame, 1));
    FramePool::free(frame);
    if (sent == 0) return taken;
  }
  return static_cast<unsigned>(burst.size());
}

bool UplinkPort::returns(const rte_mbuf* frame) const noexcept {
  return network::destination_mac(MbufFrames::bytes(frame)) == mac_;
}

void UplinkPort::drop(rte_mbuf* frame, DropReason reason) noexcept {
  ++own_.dropped(reason);
  tell_loss(frame, reason);
  FramePool::free(frame);
}

const PortStats& UplinkPort::stats() const noexcept {
  sum_ = wire_->stats();
  sum_.rx_frames += own_.rx_frames;
  sum_.rx_bytes += own_.rx_bytes;
  sum_.tx_frames += own_.tx_frames;
  sum_.tx_bytes += own_.tx_bytes;
  for (size_t i = 0; i < sum_.drops.size(); ++i) sum_.drops[i] += own_.drops[i];
  return sum_;
}

// ---- links with impairments ----

void UplinkPort::set_link(Direction direction, const impairment::Spec& spec) {
  links_.set(end_, direction, spec);
}

network::LinkReport UplinkPort::link(Direction direction) const {
  return end_.links.report(direction);
}

// A frame has come to the end of a link. The wire takes it or it is lost: it had its turn.
void UplinkPort::arrive(End&, Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (direction == Direction::receive) {
    if (!arrived_.push(frame)) drop(frame, DropReason::queue_full);
  } else if (returns(frame)) {
    turn_back(now_ns, frame);
  } else if (send(now_ns, std::span(&frame, 1)) == 0) {
    drop(frame, DropReason::queue_full);
  }
}

void UplinkPort::lose(End&, Direction, impairment::Loss loss, rte_mbuf* frame) noexcept {
  drop(frame, reason_of(loss));
}

// Turns a frame of the device to itself back, and counts it, as the wire never sees it.
void UplinkPort::turn_back(uint64_t now_ns, rte_mbuf* frame) noexcept {
  ++own_.tx_frames;
  own_.tx_bytes += frame->pkt_len;
  ++own_.rx_frames;
  own_.rx_bytes += frame->pkt_len;
  come_in(now_ns, frame);
}

void UplinkPort::come_in(uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (capture_.on()) [[unlikely]]
    capture_.record(std::span(&frame, 1));
  links_.cross(end_, Direction::receive, now_ns, frame);
}

}  // namespace rocemu::dpdk_io
