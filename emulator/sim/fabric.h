// A network of simulated hosts in virtual time: a queue of events, the earliest first, and a link
// with its own faults for each pair of nodes and direction. One seed decides everything; nothing
// reads a clock. Events of the same time happen in the order in which they were scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/sim/node.h"
#include "impairment/link.h"

namespace rocemu::sim {

// What an observer sees of a frame: when it is sent (with its fate), and when it arrives.
struct FrameRecord {
  enum class Kind : uint8_t { sent, arrived };
  Kind kind;
  uint64_t now_ns;
  uint32_t from;
  uint32_t to;
  std::span<const std::byte> frame;
  const impairment::Fate* fate;  // when sent
  bool corrupted;                // when arrived
};

class Fabric {
 public:
  explicit Fabric(uint64_t seed) : random_(seed) {}

  // Makes a node, Kind(fabric, index, options, seed, more...), that lives as long as the fabric.
  template <class Kind, class Options, class... More>
  Kind& add_node(const Options& options, More&&... more) {
    auto node = std::make_unique<Kind>(*this, static_cast<uint32_t>(nodes_.size()), options,
                                       random_.fork(), std::forward<More>(more)...);
    Kind& added = *node;
    nodes_.push_back(std::move(node));
    return added;
  }
  // From now on; frames under way are not touched.
  void set_link(const Node& from, const Node& to, const impairment::Impairments& impairments);

  // Calls `action` at `at_ns`, or now if that has passed.
  void at(uint64_t at_ns, std::function<void()> action);

  // Handles events up to and including `until_ns`, at most `max_events` of them. True when none is
  // left at all.
  bool run(uint64_t until_ns, uint64_t max_events = ~uint64_t{0});

  uint64_t now_ns() const { return now_ns_; }

  // Called for every frame, when set. May drop it: a sent frame for which it returns false is lost.
  std::function<bool(const FrameRecord&)> observer;

  // For nodes: Node::poll() is called at `at_ns`, and a frame goes to the node that has its
  // destination MAC, or nowhere when there is none.
  void schedule_poll(Node& node, uint64_t at_ns);
  void carry(Node& from, std::span<const std::byte> frame);

 private:
  struct Event {
    uint64_t at_ns;
    uint64_t number;
    Node* node;                    // a poll, or the frame's destination; null: an action
    std::vector<std::byte> frame;  // empty: a poll
    uint32_t from = 0;             // of the frame
    bool corrupted = false;
    std::function<void()> action;
  };
  struct Order {
    uint64_t at_ns;
    uint64_t number;
    uint32_t slot;
    bool operator<(const Order& other) const {  // for a queue whose top is the earliest
      return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
    }
  };
  Event& schedule(uint64_t at_ns);
  void handle(Event event);
  Node* find(std::span<const std::byte> frame);

  Random random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<uint32_t, uint32_t>, impairment::Link> links_;
  uint64_t now_ns_ = 0;
  uint64_t event_count_ = 0;
  std::priority_queue<Order> order_;
  std::deque<Event> events_;
  std::vector<uint32_t> free_events_;
};

}  // namespace rocemu::sim
