#include "emulator/sim/fabric.h"

#include <algorithm>

#include "network/links.h"
#include "network/mac.h"

namespace rocemu::sim {

namespace {

constexpr impairment::Impairments kDefaultLink{.delay_ns = 1000};

}  // namespace

void Fabric::attach(Node& node) {
  forwarding_.add_port(node);
  forwarding_.add_mac(network::mac_number(node.mac()), node);
}

void Fabric::set_link(const Node& from, const Node& to,
                      const impairment::Impairments& impairments) {
  links_.insert_or_assign({from.index(), to.index()},
                          impairment::Link(impairments, random_.fork()));
}

impairment::Link& Fabric::link(const Node& from, const Node& to) {
  const std::pair key{from.index(), to.index()};
  auto link = links_.find(key);
  if (link == links_.end())
    link = links_.emplace(key, impairment::Link(kDefaultLink, random_.fork())).first;
  return link->second;
}

void Fabric::take_lent() {
  ++landing_epoch_;
  for (Event& event : events_)
    if (auto* const arrival = std::get_if<Arrival>(&event)) arrival->frame.take_lent();
  for (const auto& node : nodes_) node->take_lent();
}

void Fabric::schedule(uint64_t at_ns, Event event) {
  auto slot = static_cast<uint32_t>(events_.size());
  if (free_slots_.empty()) {
    events_.push_back(std::move(event));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    events_[slot] = std::move(event);
  }
  due_.push(std::max(at_ns, now_ns_), std::move(slot));
}

void Fabric::at(uint64_t at_ns, std::function<void()> action) {
  schedule(at_ns, std::move(action));
}

void Fabric::schedule_poll(Node& node, uint64_t at_ns) { schedule(at_ns, Poll{&node}); }

void Fabric::carry(Node& from, const network::SharedFrame& frame) {
  if (frame.bytes().size() < network::kEthernetHeaderBytes) return;
  forwarding_.forward(from, frame, [&](Node& to, const network::SharedFrame& forwarded) {
    cross(from, to, forwarded);
  });
}

void Fabric::cross(const Node& from, Node& to, const network::SharedFrame& frame) {
  const impairment::Fate fate = link(from, to).judge(now_ns_, frame.bytes().size());
  if (observer && !observer({FrameRecord::Kind::sent, now_ns_, from.index(), to.index(),
                             frame.bytes(), &fate, false}))
    return;
  network::each_arrival<network::SharedFrames>(
      fate, frame,
      [&](const impairment::Arrival& arrival, network::SharedFrame&& arriving) {
        schedule(arrival.at_ns, Arrival{&to, from.index(), arrival.corrupted, std::move(arriving)});
      },
      [](const network::SharedFrame&) {});
}

bool Fabric::run(uint64_t until_ns, uint64_t max_events) {
  for (uint64_t i = 0; i < max_events; ++i) {
    if (due_.empty()) return true;
    if (due_.next() > until_ns) {
      now_ns_ = until_ns;
      return false;
    }
    const auto due = due_.pop();
    now_ns_ = due.at;
    Event event = std::move(events_[due.item]);
    free_slots_.push_back(due.item);
    std::visit([this](auto& what) { handle(std::move(what)); }, event);
  }
  return due_.empty();
}

void Fabric::handle(Poll poll) { poll.node->poll(now_ns_); }

void Fabric::handle(Arrival arrival) {
  if (observer)
    observer({FrameRecord::Kind::arrived, now_ns_, arrival.from, arrival.to->index(),
              arrival.frame.bytes(), nullptr, arrival.corrupted});
  arrival.to->receive(std::move(arrival.frame));
}

}  // namespace rocemu::sim
