#include "emulator/lab/lab_wire.h"

#include <algorithm>
#include <string>
#include <utility>

namespace rocemu::lab {

using impairment::Direction;

LabWire::LabWire(unsigned hosts, Deliver deliver) : deliver_(std::move(deliver)) {
  hosts_.reserve(hosts);
  for (unsigned i = 0; i < hosts; ++i)
    forwarding_.add_port(hosts_.emplace_back(Host{network::PortLinks(i), i}));
}

bool LabWire::impair(const impairment::Assignment& assignment) {
  bool any = false;
  for (Host& host : hosts_) {
    if (assignment.port != impairment::kAllPorts &&
        assignment.port != "h" + std::to_string(host.number + 1))
      continue;
    any = true;
    for (const Direction direction : impairment::kDirections)
      if (assignment.covers(direction)) links_.set(host, direction, assignment.spec);
  }
  return any;
}

bool LabWire::set_network(const network::Description& description, TimeNs now) {
  if (description.topology.hosts().size() < hosts_.size()) return false;
  network_ = std::make_unique<Network>(description.topology, description.settings, *this,
                                       kMaxUnderWay, now);
  network_->learn_macs();
  return true;
}

// Both by turns, so that whatever is due happens in its order.
void LabWire::advance(TimeNs now) {
  while (next_arrival_ns() <= now) {
    const TimeNs next = next_arrival_ns();
    if (links_.next_arrival() == next) {
      links_.advance(next);
    } else {
      network_->advance(next);
    }
  }
}

TimeNs LabWire::next_arrival_ns() const {
  const TimeNs of_links = links_.next_arrival();
  return network_ == nullptr ? of_links : std::min(of_links, network_->next_event());
}

void LabWire::on_frame(TimeNs now, unsigned host, std::span<const std::byte> frame) {
  advance(now);
  if (frame.size() >= network::kEthernetHeaderBytes)
    links_.cross(hosts_[host], Direction::transmit, now, Frame(frame));
}

void LabWire::arrive(Host& host, Direction direction, TimeNs now, const Frame& frame) {
  if (direction == Direction::receive) return deliver_(host.number, frame.bytes());
  if (network_ != nullptr) return network_->send(host.number, now, frame);
  forwarding_.forward(host, frame, [&](Host& to, const Frame& forwarded) {
    links_.cross(to, Direction::receive, now, forwarded);
  });
}

// A flooded frame comes to hosts that the lab does not have, too.
void LabWire::deliver(uint32_t host, TimeNs now, const Frame& frame) {
  if (host < hosts_.size()) links_.cross(hosts_[host], Direction::receive, now, frame);
}

}  // namespace rocemu::lab
