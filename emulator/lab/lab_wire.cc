#include "emulator/lab/lab_wire.h"

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

void LabWire::on_frame(TimeNs now, unsigned host, std::span<const std::byte> frame) {
  if (frame.size() >= network::kEthernetHeaderBytes)
    links_.cross(hosts_[host], Direction::transmit, now, Frame(frame));
}

void LabWire::arrive(Host& host, Direction direction, TimeNs now, const Frame& frame) {
  if (direction == Direction::receive) return deliver_(host.number, frame.bytes());
  forwarding_.forward(host, frame, [&](Host& to, const Frame& forwarded) {
    links_.cross(to, Direction::receive, now, forwarded);
  });
}

}  // namespace rocemu::lab
