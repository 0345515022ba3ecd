#include "emulator/sim/fabric.h"

#include <algorithm>
#include <cstring>

#include "emulator/wire/headers.h"

namespace rocemu::sim {

namespace {

constexpr impairment::Impairments kDefaultLink{.delay_ns = 1000};

}  // namespace

void Fabric::set_link(const Node& from, const Node& to,
                      const impairment::Impairments& impairments) {
  links_.insert_or_assign({from.index(), to.index()},
                          impairment::Link(impairments, random_.fork()));
}

Fabric::Event& Fabric::schedule(uint64_t at_ns) {
  uint32_t slot;
  if (free_events_.empty()) {
    slot = static_cast<uint32_t>(events_.size());
    events_.emplace_back();
  } else {
    slot = free_events_.back();
    free_events_.pop_back();
  }
  Event& event = events_[slot];
  event.at_ns = std::max(at_ns, now_ns_);
  event.number = event_count_++;
  event.node = nullptr;
  order_.push({event.at_ns, event.number, slot});
  return event;
}

void Fabric::at(uint64_t at_ns, std::function<void()> action) {
  schedule(at_ns).action = std::move(action);
}

void Fabric::schedule_poll(Node& node, uint64_t at_ns) { schedule(at_ns).node = &node; }

Node* Fabric::find(std::span<const std::byte> frame) {
  wire::MacAddress mac{};
  if (frame.size() < wire::kEthernetBytes) return nullptr;
  std::memcpy(mac.data(), frame.data(), mac.size());
  const uint32_t index = Node::index_of(mac);
  return index < nodes_.size() ? nodes_[index].get() : nullptr;
}

void Fabric::carry(Node& from, std::span<const std::byte> frame) {
  Node* to = find(frame);
  if (to == nullptr) return;
  const std::pair key{from.index(), to->index()};
  auto link = links_.find(key);
  if (link == links_.end())
    link = links_.emplace(key, impairment::Link(kDefaultLink, random_.fork())).first;
  const impairment::Fate fate = link->second.judge(now_ns_, frame.size());
  if (observer &&
      !observer({FrameRecord::Kind::sent, now_ns_, from.index(), to->index(), frame, &fate, false}))
    return;
  for (const impairment::Arrival& arrival : fate.view()) {
    Event& event = schedule(arrival.at_ns);
    event.node = to;
    event.from = from.index();
    event.corrupted = arrival.corrupted;
    event.frame.assign(frame.begin(), frame.end());
    impairment::corrupt(arrival, event.frame);
  }
}

bool Fabric::run(uint64_t until_ns, uint64_t max_events) {
  for (uint64_t i = 0; i < max_events; ++i) {
    if (order_.empty()) return true;
    const Order next = order_.top();
    if (next.at_ns > until_ns) {
      now_ns_ = until_ns;
      return false;
    }
    order_.pop();
    now_ns_ = next.at_ns;
    Event event = std::move(events_[next.slot]);
    events_[next.slot] = {};
    free_events_.push_back(next.slot);
    handle(std::move(event));
  }
  return order_.empty();
}

void Fabric::handle(Event event) {
  if (event.node == nullptr) {
    event.action();
  } else if (event.frame.empty()) {
    event.node->poll(now_ns_);
  } else {
    if (observer)
      observer({FrameRecord::Kind::arrived, now_ns_, event.from, event.node->index(), event.frame,
                nullptr, event.corrupted});
    event.node->receive(std::move(event.frame));
  }
}

}  // namespace rocemu::sim
