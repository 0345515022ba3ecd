#include "dpdk_io/switch/switch.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpdk_io/switch/switch_port.h"
#include "network/mac.h"

namespace rocemu::dpdk_io {

using impairment::Direction;

Switch::Switch(FramePool& pool, unsigned queue_frames)
    : queue_frames_(std::clamp(queue_frames, 1u, pool.capacity())),
      links_(*this, pool.capacity()) {}

Switch::~Switch() = default;

LinkedPort& Switch::add_port(std::array<uint8_t, 6> address, std::string name) {
  const uint64_t mac = network::mac_number(address);
  if (mac == 0 || (mac & network::kGroupBit) != 0) {
    throw std::runtime_error("port " + name +
                             ": its MAC is zero or a group address; give it a unicast one");
  }
  if (const SwitchPort* const taken = forwarding_.find(mac); taken != nullptr) {
    throw std::runtime_error("port " + name + ": its MAC is that of port " + taken->name());
  }
  if (ports_.size() == kMaxPorts) {
    throw std::runtime_error("port " + name + ": the switch has " + std::to_string(kMaxPorts) +
                             " ports already");
  }
  ports_.push_back(std::make_unique<SwitchPort>(*this, static_cast<unsigned>(ports_.size()),
                                                std::move(name), queue_frames_));
  forwarding_.add_port(*ports_.back());
  forwarding_.add_mac(mac, *ports_.back());
  return *ports_.back();
}

void Switch::set_capture(PcapWriter* writer, Capture::Clock clock) {
  capture_.set(writer, std::move(clock));
}

void Switch::hold(uint64_t now_ns) noexcept {
  links_.advance(now_ns);
  holds_ = true;
}

void Switch::carry_held(uint64_t now_ns) noexcept {
  holds_ = false;
  std::array<rte_mbuf*, kMaxHeld> held;
  for (const auto& port : ports_) carry(*port, now_ns, port->take_held(held));
}

void Switch::carry(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (links_.impaired()) [[unlikely]]
    return carry_impaired(from, now_ns, burst);
  if (capture_.on()) [[unlikely]]
    capture_.record(burst);
  for (rte_mbuf* frame : burst) {
    if (!well_formed(frame)) [[unlikely]] {
      from.drop(frame, DropReason::malformed);
    } else if (!forwarding_.forward(from, frame, [](SwitchPort& to, rte_mbuf* sent) {
                 to.enqueue(sent);
               })) [[unlikely]] {
      from.drop(frame, DropReason::unknown_destination);
    }
  }
}

void Switch::carry_impaired(SwitchPort& from, uint64_t now_ns,
                            std::span<rte_mbuf*> burst) noexcept {
  links_.advance(now_ns);
  for (rte_mbuf* frame : burst) {
    if (well_formed(frame)) {
      links_.cross(from, Direction::transmit, now_ns, frame);
    } else {
      from.drop(frame, DropReason::malformed);
    }
  }
}

// A frame has come over the transmit link of `from`, while some link has impairments.
void Switch::enter(SwitchPort& from, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (capture_.on()) [[unlikely]]
    capture_.record(std::span(&frame, 1));
  if (!forwarding_.forward(from, frame, [this, now_ns](SwitchPort& to, rte_mbuf* sent) {
        links_.cross(to, Direction::receive, now_ns, sent);
      }))
    from.drop(frame, DropReason::unknown_destination);
}

void Switch::arrive(SwitchPort& port, Direction direction, uint64_t now_ns,
                    rte_mbuf* frame) noexcept {
  if (direction == Direction::transmit) {
    enter(port, now_ns, frame);
  } else {
    port.enqueue(frame);
  }
}

void Switch::lose(SwitchPort& port, Direction, impairment::Loss loss, rte_mbuf* frame) noexcept {
  port.drop(frame, reason_of(loss));
}

}  // namespace rocemu::dpdk_io
