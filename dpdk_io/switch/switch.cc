#include "dpdk_io/switch/switch.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dpdk_io/switch/switch_port.h"
#include "network/mac.h"

namespace rocemu::dpdk_io {

using impairment::Direction;

Switch::Switch(FramePool& pool, unsigned queue_frames)
    : pool_(pool),
      queue_frames_(std::clamp(queue_frames, 1u, pool.capacity())),
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
  if (network_ != nullptr && ports_.size() == network_->host_count()) {
    throw std::runtime_error("port " + name + ": the network has " +
                             std::to_string(network_->host_count()) + " hosts");
  }
  if (network_ != nullptr) network_->add_mac(mac, static_cast<uint32_t>(ports_.size()));
  ports_.push_back(std::make_unique<SwitchPort>(*this, static_cast<unsigned>(ports_.size()),
                                                std::move(name), queue_frames_));
  forwarding_.add_port(*ports_.back());
  forwarding_.add_mac(mac, *ports_.back());
  return *ports_.back();
}

void Switch::set_network(const network::Topology& topology,
                         const network::NetworkSettings& settings, uint64_t now_ns) {
  network_ = std::make_unique<Network>(topology, settings, *this, pool_.capacity(), now_ns);
  topology_ = topology;
  takes_time_ = true;
}

std::vector<network::PortReport> Switch::report_network(uint64_t now_ns) const {
  if (network_ == nullptr) return {};
  std::vector<network::PortReport> reports = network::report(*network_, topology_, now_ns);
  for (network::PortReport& report : reports)
    if (report.host && *report.host < ports_.size()) report.device = ports_[*report.host]->name();
  return reports;
}

void Switch::set_link(SwitchPort& port, Direction direction, const impairment::Spec& spec) {
  links_.set(port, direction, spec);
  takes_time_ = links_.impaired() || network_ != nullptr;
}

bool Switch::storm(const SwitchPort& port, uint64_t now_ns, bool received, bool sent) noexcept {
  if (network_ == nullptr) return false;
  advance(now_ns);
  network_->storm(port.number(), now_ns, received, sent);
  note_next_arrival();
  return true;
}

void Switch::set_capture(FrameWriter* writer, Capture::Clock clock) {
  capture_.set(writer, std::move(clock));
}

// Both by turns, so that whatever is due happens in its order.
void Switch::advance(uint64_t now_ns) noexcept {
  if (network_ == nullptr) {
    links_.advance(now_ns);
  } else {
    while (true) {
      const uint64_t of_links = links_.next_arrival();
      const uint64_t of_network = network_->next_event();
      if (std::min(of_links, of_network) > now_ns) break;
      if (of_links <= of_network) {
        links_.advance(of_links);
      } else {
        network_->advance(of_network);
      }
    }
  }
  note_next_arrival();
}

void Switch::note_next_arrival() noexcept {
  next_arrival_ns_ = links_.next_arrival();
  if (network_ != nullptr) next_arrival_ns_ = std::min(next_arrival_ns_, network_->next_event());
}

void Switch::hold(uint64_t now_ns) noexcept {
  advance(now_ns);
  holds_ = true;
}

void Switch::carry_held(uint64_t now_ns) noexcept {
  holds_ = false;
  std::array<rte_mbuf*, kMaxHeld> held;
  for (const auto& port : ports_) carry(*port, now_ns, port->take_held(held));
}

void Switch::take_lent() noexcept {
  ++landing_epoch_;
  for (const auto& port : ports_) port->take_lent();
}

void Switch::carry(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  if (run_pool_ != nullptr && !runs_can_pass()) [[unlikely]]
    burst = from.drop_runs(burst);
  if (takes_time_) [[unlikely]]
    return carry_slowly(from, now_ns, burst);
  if (capture_.on()) [[unlikely]] {
    for (rte_mbuf* frame : burst) pay_icrc(frame, store_icrc_);
    capture_.record(burst);
  }
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

void Switch::carry_slowly(SwitchPort& from, uint64_t now_ns, std::span<rte_mbuf*> burst) noexcept {
  advance(now_ns);
  for (rte_mbuf* frame : burst) {
    if (well_formed(frame)) {
      pay_icrc(frame, store_icrc_);
      forget_landing(frame);  // which a copy of the frame would not have before it
      links_.cross(from, Direction::transmit, now_ns, frame);
    } else {
      from.drop(frame, DropReason::malformed);
    }
  }
  note_next_arrival();
}

// A frame has come over the transmit link of `from`, where frames may take time.
void Switch::enter(SwitchPort& from, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (capture_.on()) [[unlikely]]
    capture_.record(std::span(&frame, 1));
  if (network_ != nullptr) return network_->send(from.number(), now_ns, frame);
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

// A flooded frame comes to hosts without a port, too.
void Switch::deliver(uint32_t host, uint64_t now_ns, rte_mbuf* frame) noexcept {
  if (host < ports_.size()) {
    links_.cross(*ports_[host], Direction::receive, now_ns, frame);
  } else {
    FramePool::free(frame);
  }
}

void Switch::lose(uint32_t, network::NetworkLoss loss, rte_mbuf* frame) noexcept {
  SwitchPort* const sender = forwarding_.find(network::source_mac(MbufFrames::bytes(frame)));
  const DropReason reason = loss == network::NetworkLoss::unknown_destination
                                ? DropReason::unknown_destination
                                : DropReason::network;
  if (sender != nullptr) return sender->drop(frame, reason);
  FramePool::free(frame);
}

}  // namespace rocemu::dpdk_io
