#include "emulator/lab/lab_wire.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace rocemu::lab {
namespace {

using impairment::Direction;

constexpr size_t kMacBytes = 6;
constexpr size_t kEthernetBytes = 14;
constexpr size_t kMaxMacs = 4096;
constexpr std::byte kGroupBit{1};  // of a MAC's first byte (IEEE 802-2014, 8.2.2)

uint64_t mac_at(std::span<const std::byte> frame, size_t offset) {
  uint64_t mac = 0;
  std::memcpy(&mac, &frame[offset], kMacBytes);
  return mac;
}

}  // namespace

LabWire::LabWire(unsigned hosts, Deliver deliver) : hosts_(hosts), deliver_(std::move(deliver)) {}

bool LabWire::impair(const impairment::Assignment& assignment) {
  bool any = false;
  for (unsigned i = 0; i < hosts_.size(); ++i) {
    if (assignment.port != impairment::kAllPorts && assignment.port != "h" + std::to_string(i + 1))
      continue;
    any = true;
    for (const Direction direction : impairment::kDirections) {
      if (!assignment.covers(direction)) continue;
      auto& link = hosts_[i].links[static_cast<size_t>(direction)];
      link.reset();
      if (assignment.spec.impairments != impairment::Impairments{})
        link = std::make_unique<impairment::Link>(
            assignment.spec.impairments, impairment::link_seed(assignment.spec.seed, i, direction));
    }
  }
  return any;
}

void LabWire::on_frame(uint64_t now_ns, unsigned host, std::span<const std::byte> frame) {
  if (frame.size() < kEthernetBytes) return;
  travel(now_ns, Direction::transmit, host,
         std::make_shared<std::vector<std::byte>>(frame.begin(), frame.end()));
}

void LabWire::advance(uint64_t now_ns) {
  while (next_arrival_ns() <= now_ns) {
    const UnderWay next = under_way_.top();
    under_way_.pop();
    arrive(next.at_ns, next.direction, next.host, next.frame);
  }
}

void LabWire::travel(uint64_t now_ns, Direction direction, unsigned host, Frame frame) {
  const auto& link = hosts_[host].links[static_cast<size_t>(direction)];
  if (link == nullptr) return arrive(now_ns, direction, host, frame);
  const impairment::Fate fate = link->judge(now_ns, frame->size());
  for (const impairment::Arrival& arrival : fate.view()) {
    Frame arriving = frame;
    if (arrival.corrupted) {
      auto changed = std::make_shared<std::vector<std::byte>>(*frame);
      impairment::corrupt(arrival, *changed);
      arriving = std::move(changed);
    }
    if (arrival.at_ns <= now_ns)
      arrive(now_ns, direction, host, arriving);
    else if (under_way_.size() < kMaxUnderWay)
      under_way_.push({arrival.at_ns, next_order_++, direction, host, std::move(arriving)});
  }
}

void LabWire::arrive(uint64_t now_ns, Direction direction, unsigned host, const Frame& frame) {
  if (direction == Direction::receive)
    deliver_(host, *frame);
  else
    forward(now_ns, host, frame);
}

void LabWire::forward(uint64_t now_ns, unsigned from, const Frame& frame) {
  if (((*frame)[kMacBytes] & kGroupBit) == std::byte{}) {
    const uint64_t source = mac_at(*frame, kMacBytes);
    if (host_of_mac_.size() < kMaxMacs || host_of_mac_.contains(source))
      host_of_mac_[source] = from;
  }
  const auto known = host_of_mac_.find(mac_at(*frame, 0));
  if (known != host_of_mac_.end() && ((*frame)[0] & kGroupBit) == std::byte{}) {
    if (known->second != from) travel(now_ns, Direction::receive, known->second, frame);
    return;
  }
  for (unsigned i = 0; i < hosts_.size(); ++i)
    if (i != from) travel(now_ns, Direction::receive, i, frame);
}

}  // namespace rocemu::lab
