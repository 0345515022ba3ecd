#include "dpdk_io/port/uplink_port.h"

#include <rte_mbuf.h>

#include <stdexcept>
#include <utility>

#include "dpdk_io/port/impaired_frame.h"
#include "dpdk_io/port/mac_number.h"
#include "dpdk_io/port/pcap.h"

namespace rocemu::dpdk_io {

using impairment::Direction;

UplinkPort::UplinkPort(std::unique_ptr<Port> wire, unsigned number, FramePool& pool)
    : wire_(std::move(wire)),
      number_(number),
      pool_frames_(pool.capacity()),
      arrived_(pool.capacity()) {}

void UplinkPort::set_mac(std::array<uint8_t, 6> mac) noexcept { mac_ = mac_number(mac); }

void UplinkPort::set_capture(PcapWriter* writer, Clock clock) {
  if (writer != nullptr && !clock) throw std::runtime_error("a capture needs a clock");
  capture_ = writer;
  capture_clock_ = std::move(clock);
}

unsigned UplinkPort::receive(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (in_flight_.next_arrival_ns() <= now_ns) [[unlikely]]
    arrive_due(now_ns);
  if (receive_link_ != nullptr) [[unlikely]] {
    const unsigned count = wire_->receive(now_ns, burst);
    for (rte_mbuf* frame : burst.first(count)) come_in(now_ns, frame);
  }
  unsigned count = 0;
  if (!arrived_.empty()) [[unlikely]] {
    count = arrived_.pop(burst);
    if (count == burst.size()) return count;
  }
  if (receive_link_ != nullptr) return count;
  const unsigned arrived = wire_->receive(now_ns, burst.subspan(count));
  if (capture_ != nullptr) [[unlikely]]
    for (rte_mbuf* frame : burst.subspan(count, arrived)) record(frame);
  return count + arrived;
}

unsigned UplinkPort::transmit(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (in_flight_.next_arrival_ns() <= now_ns) [[unlikely]]
    arrive_due(now_ns);
  if (transmit_link_ != nullptr) [[unlikely]] {
    for (rte_mbuf* frame : burst) travel(Direction::transmit, now_ns, frame);
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
    for (; taken < burst.size() && returns(burst[taken]); ++taken)
      arrive(Direction::transmit, now_ns, burst[taken]);
  }
  return taken;
}

// A recorded frame is kept until the wire has taken it: what it refuses comes once more.
unsigned UplinkPort::send(uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (!running_) [[unlikely]] {
    for (rte_mbuf* frame : burst) drop(frame, DropReason::refused_by_kernel);
    return static_cast<unsigned>(burst.size());
  }
  if (capture_ == nullptr) [[likely]]
    return wire_->transmit(now_ns, burst);
  for (unsigned taken = 0; taken < burst.size(); ++taken) {
    rte_mbuf* const frame = burst[taken];
    rte_mbuf_refcnt_update(frame, 1);
    const unsigned sent = wire_->transmit(now_ns, burst.subspan(taken, 1));
    if (sent == 1) record(frame);
    FramePool::free(frame);
    if (sent == 0) return taken;
  }
  return static_cast<unsigned>(burst.size());
}

bool UplinkPort::returns(const rte_mbuf* frame) const noexcept {
  return destination_mac(frame) == mac_;
}

void UplinkPort::record(rte_mbuf* frame) noexcept {
  capture_->write({rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len}, capture_clock_());
}

void UplinkPort::drop(rte_mbuf* frame, DropReason reason) noexcept {
  ++own_.dropped(reason);
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
  in_flight_.reserve(pool_frames_);
  std::unique_ptr<ImpairedLink>& link = impaired_link(direction);
  link.reset();
  if (spec.impairments == impairment::Impairments{}) return;
  link = std::make_unique<ImpairedLink>(spec, impairment::link_seed(spec.seed, number_, direction));
}

LinkReport UplinkPort::link(Direction direction) const {
  const auto& link = direction == Direction::transmit ? transmit_link_ : receive_link_;
  return link != nullptr ? LinkReport{link->spec(), link->stats()} : LinkReport{};
}

// Hands a frame to a link that has impairments.
void UplinkPort::travel(Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept {
  ImpairedLink& link = *impaired_link(direction);
  const impairment::Fate fate = link.judge(now_ns, frame->data_len);
  if (fate.arrival_count == 0) return drop(frame, reason_of(fate.loss));
  if (fate.arrival_count > 1)
    rte_mbuf_refcnt_update(frame, static_cast<int16_t>(fate.arrival_count - 1));
  for (const impairment::Arrival& arrival : fate.view()) {
    rte_mbuf* const arriving = arrival.corrupted ? corrupted(frame, arrival) : frame;
    if (arriving == nullptr) {
      link.on_no_room();
      drop(frame, DropReason::impairment_queue);
    } else if (arrival.at_ns <= now_ns) {
      arrive(direction, now_ns, arriving);
    } else if (!in_flight_.push({arrival.at_ns, nullptr, direction, arriving})) {
      link.on_no_room();
      drop(arriving, DropReason::impairment_queue);
    }
  }
}

// A frame has come to the end of a link. The wire takes it or it is lost: it had its turn.
void UplinkPort::arrive(Direction direction, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (direction == Direction::receive) {
    if (!arrived_.push(frame)) drop(frame, DropReason::queue_full);
  } else if (returns(frame)) {
    ++own_.tx_frames;
    own_.tx_bytes += frame->pkt_len;
    ++own_.rx_frames;
    own_.rx_bytes += frame->pkt_len;
    come_in(now_ns, frame);
  } else if (send(now_ns, std::span(&frame, 1)) == 0) {
    drop(frame, DropReason::queue_full);
  }
}

void UplinkPort::come_in(uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (capture_ != nullptr) [[unlikely]]
    record(frame);
  if (receive_link_ != nullptr) {
    travel(Direction::receive, now_ns, frame);
  } else {
    arrive(Direction::receive, now_ns, frame);
  }
}

// Each at its own time, so that a second link on the way counts from then.
void UplinkPort::arrive_due(uint64_t now_ns) noexcept {
  while (in_flight_.next_arrival_ns() <= now_ns) {
    const FramesInFlight::Entry entry = in_flight_.pop();
    arrive(entry.direction, entry.at_ns, entry.frame);
  }
}

}  // namespace rocemu::dpdk_io
