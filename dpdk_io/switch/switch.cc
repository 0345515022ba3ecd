#include "dpdk_io/switch/switch.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpdk_io/port/impaired_frame.h"
#include "dpdk_io/port/mac_number.h"
#include "dpdk_io/port/pcap.h"
#include "dpdk_io/switch/switch_port.h"

namespace rocemu::dpdk_io {
namespace {

constexpr uint64_t kGroupBit = 0x01;  // IEEE 802-2014, 8.2.2: the first bit on the wire

using impairment::Direction;

}  // namespace

Switch::Switch(FramePool& pool, unsigned queue_frames)
    : queue_frames_(std::clamp(queue_frames, 1u, pool.capacity())), pool_frames_(pool.capacity()) {}

Switch::~Switch() = default;

LinkedPort& Switch::add_port(std::array<uint8_t, 6> address, std::string name) {
  const uint64_t mac = mac_number(address);
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
  ports_.push_back(std::make_unique<SwitchPort>(*this, static_cast<unsigned>(ports_.size()),
                                                std::move(name), queue_frames_));
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

void Switch::hold(uint64_t now_ns) noexcept {
  arrive_due(now_ns);
  holds_ = true;
}

void Switch::carry_held(uint64_t now_ns) noexcept {
  holds_ = false;
  std::array<rte_mbuf*, kMaxHeld> held;
  for (const auto& port : ports_) carry(*port, now_ns, port->take_held(held));
}

void Switch::carry(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (impaired_links_ != 0) [[unlikely]]
    return carry_impaired(from, now_ns, burst);
  if (capture_ != nullptr) [[unlikely]]
    record(burst);
  for (rte_mbuf* frame : burst) {
    if (well_formed(frame)) [[likely]] {
      forward(from, frame, [](SwitchPort& to, rte_mbuf* sent) { to.enqueue(sent); });
    } else {
      from.drop(frame, DropReason::malformed);
    }
  }
}

template <class Deliver>
void Switch::forward(SwitchPort& from, rte_mbuf* frame, Deliver deliver) noexcept {
  const uint64_t mac = destination_mac(frame);
  if ((mac & kGroupBit) != 0) return flood(from, frame, deliver);
  if (mac != last_mac_) {
    last_mac_ = mac;
    last_port_ = find(mac);
  }
  if (last_port_ != nullptr) [[likely]] {
    deliver(*last_port_, frame);
  } else {
    from.drop(frame, DropReason::unknown_destination);
  }
}

template <class Deliver>
void Switch::flood(SwitchPort& from, rte_mbuf* frame, Deliver deliver) noexcept {
  rte_mbuf_refcnt_update(frame, static_cast<int16_t>(ports_.size() - 1));
  for (const auto& port : ports_) {
    if (port.get() != &from) deliver(*port, frame);
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

// ---- links with impairments ----

void Switch::set_link(unsigned port, Direction direction, const impairment::Spec& spec) {
  in_flight_.reserve(pool_frames_);
  std::unique_ptr<ImpairedLink>& link = ports_.at(port)->impaired_link(direction);
  impaired_links_ -= link != nullptr;
  link.reset();
  if (spec.impairments == impairment::Impairments{}) return;
  link = std::make_unique<ImpairedLink>(spec, impairment::link_seed(spec.seed, port, direction));
  ++impaired_links_;
}

LinkReport Switch::link(unsigned port, Direction direction) const {
  const std::unique_ptr<ImpairedLink>& link = ports_.at(port)->impaired_link(direction);
  return link != nullptr ? LinkReport{link->spec(), link->stats()} : LinkReport{};
}

void Switch::carry_impaired(SwitchPort& from, uint64_t now_ns,
                            std::span<rte_mbuf*> burst) noexcept {
  arrive_due(now_ns);
  for (rte_mbuf* frame : burst) {
    if (!well_formed(frame)) {
      from.drop(frame, DropReason::malformed);
    } else if (from.impaired_link(Direction::transmit) != nullptr) {
      travel(from, Direction::transmit, now_ns, frame);
    } else {
      enter(from, now_ns, frame);
    }
  }
}

// Hands a frame to a link that has impairments.
void Switch::travel(SwitchPort& port, Direction direction, uint64_t now_ns,
                    rte_mbuf* frame) noexcept {
  ImpairedLink& link = *port.impaired_link(direction);
  const impairment::Fate fate = link.judge(now_ns, frame->data_len);
  if (fate.arrival_count == 0) return port.drop(frame, reason_of(fate.loss));
  if (fate.arrival_count > 1)
    rte_mbuf_refcnt_update(frame, static_cast<int16_t>(fate.arrival_count - 1));
  for (const impairment::Arrival& arrival : fate.view()) {
    rte_mbuf* const arriving = arrival.corrupted ? corrupted(frame, arrival) : frame;
    if (arriving == nullptr) {
      link.on_no_room();
      port.drop(frame, DropReason::impairment_queue);
    } else if (arrival.at_ns <= now_ns) {
      arrive(port, direction, now_ns, arriving);
    } else if (!in_flight_.push({arrival.at_ns, &port, direction, arriving})) {
      link.on_no_room();
      port.drop(arriving, DropReason::impairment_queue);
    }
  }
}

// A frame has come to the end of a link.
void Switch::arrive(SwitchPort& port, Direction direction, uint64_t now_ns,
                    rte_mbuf* frame) noexcept {
  if (direction == Direction::transmit) {
    enter(port, now_ns, frame);
  } else {
    port.enqueue(frame);
  }
}

void Switch::enter(SwitchPort& from, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (capture_ != nullptr) [[unlikely]]
    record(std::span(&frame, 1));
  forward(from, frame, [this, now_ns](SwitchPort& to, rte_mbuf* sent) {
    if (to.impaired_link(Direction::receive) != nullptr) {
      travel(to, Direction::receive, now_ns, sent);
    } else {
      to.enqueue(sent);
    }
  });
}

// Each at its own time, so that a second link on the way counts from then.
void Switch::arrive_due(uint64_t now_ns) noexcept {
  while (in_flight_.next_arrival_ns() <= now_ns) {
    const FramesInFlight::Entry entry = in_flight_.pop();
    arrive(*entry.port, entry.direction, entry.at_ns, entry.frame);
  }
}

}  // namespace rocemu::dpdk_io
