// A network of simulated hosts in virtual time: a queue of events, the earliest first, and a link
// with its own faults for each pair of nodes and direction. One seed decides everything; nothing
// reads a clock. Events of the same time happen in the order in which they were scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "emulator/sim/node.h"
#include "impairment/link.h"
#include "network/due_queue.h"
#include "network/forwarding.h"
#include "network/shared_frame.h"

namespace rocemu::sim {

// An observer sees a frame when it is sent (with its fate), and when it arrives.
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
    attach(added);
    return added;
  }
  // Holds from now on; frames under way are not touched.
  void set_link(const Node& from, const Node& to, const impairment::Impairments& impairments);

  // Copies what frames under way have lent, as a NIC does before programs have their memory back
  // otherwise than by an answer. Landings end with it. Precondition: no node holds back what
  // arrives.
  void take_lent();
  // Those of this epoch hold (transport::Landing).
  uint64_t landing_epoch() const { return landing_epoch_; }

  // Calls `action` at `at_ns`, or now if that has passed.
  void at(uint64_t at_ns, std::function<void()> action);

  // Handles events up to and including `until_ns`, at most `max_events` of them. True when none is
  // left at all.
  bool run(uint64_t until_ns, uint64_t max_events = ~uint64_t{0});

  uint64_t now_ns() const { return now_ns_; }

  // Called for every frame, when set. May drop it: a sent frame for which it returns false is lost.
  std::function<bool(const FrameRecord&)> observer;

  // These two are for nodes. Node::poll() is called at `at_ns`, and a frame goes to the node that
  // has its destination MAC, to nobody when there is none, and to all others when it is a group's.
  void schedule_poll(Node& node, uint64_t at_ns);
  void carry(Node& from, const network::SharedFrame& frame);

 private:
  struct Poll {
    Node* node;
  };
  struct Arrival {
    Node* to;
    uint32_t from;
    bool corrupted;
    network::SharedFrame frame;
  };
  using Action = std::function<void()>;
  using Event = std::variant<Poll, Arrival, Action>;

  void attach(Node& node);
  void schedule(uint64_t at_ns, Event event);
  void cross(const Node& from, Node& to, const network::SharedFrame& frame);
  impairment::Link& link(const Node& from, const Node& to);
  void handle(Poll poll);
  void handle(Arrival arrival);
  void handle(Action action) { action(); }

  Random random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  network::Forwarding<network::SharedFrames, Node, network::Macs::configured> forwarding_;
  std::map<std::pair<uint32_t, uint32_t>, impairment::Link> links_;
  uint64_t now_ns_ = 0;
  uint64_t landing_epoch_ = 1;
  network::DueQueue<uint32_t> due_;  // slots of events_, which itself would be long to move about
  std::vector<Event> events_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace rocemu::sim
