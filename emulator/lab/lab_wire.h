// The wire of a lab whose network is bad: an Ethernet switch between the hosts' interfaces, with a
// link to each host that has impairments, one direction at a time. It carries whatever the hosts
// send, RoCE, TCP and ARP alike. Time comes in as a parameter; frames go out by a function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "impairment/assignment.h"
#include "impairment/link.h"

namespace rocemu::lab {

class LabWire {
 public:
  static constexpr size_t kMaxUnderWay = 16384;  // frames; what is more is lost
  using Deliver = std::function<void(unsigned host, std::span<const std::byte> frame)>;

  LabWire(unsigned hosts, Deliver deliver);

  // Host N is called h(N+1). False when the assignment names none.
  bool impair(const impairment::Assignment& assignment);

  // A host has sent a frame. `now_ns` never goes back.
  void on_frame(uint64_t now_ns, unsigned host, std::span<const std::byte> frame);
  // Hands out what has arrived by now.
  void advance(uint64_t now_ns);
  uint64_t next_arrival_ns() const { return under_way_.empty() ? kNever : under_way_.top().at_ns; }

 private:
  using Frame = std::shared_ptr<const std::vector<std::byte>>;
  struct UnderWay {
    uint64_t at_ns;
    uint64_t order;  // of those that arrive at the same time
    impairment::Direction direction;
    unsigned host;
    Frame frame;
    bool operator<(const UnderWay& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  struct Host {
    std::array<std::unique_ptr<impairment::Link>, 2> links;  // by direction; none: a perfect one
  };

  void travel(uint64_t now_ns, impairment::Direction direction, unsigned host, Frame frame);
  void arrive(uint64_t now_ns, impairment::Direction direction, unsigned host, const Frame& frame);
  void forward(uint64_t now_ns, unsigned from, const Frame& frame);

  std::vector<Host> hosts_;
  Deliver deliver_;
  std::unordered_map<uint64_t, unsigned> host_of_mac_;  // learned from what they send
  std::priority_queue<UnderWay> under_way_;
  uint64_t next_order_ = 0;
};

}  // namespace rocemu::lab
