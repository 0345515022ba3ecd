// A node of the simulated network, as the fabric sees it: it takes frames, and is polled when it
// has asked for that. polling_node.h is the loop that the nodes of this folder have in common.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "emulator/wire/types.h"
#include "network/shared_frame.h"

namespace rocemu::sim {

class Node {
 public:
  // Nodes are numbered from 0; there is a MAC for 2^24 - 1 of them.
  explicit Node(uint32_t index) : index_(index) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  uint32_t index() const { return index_; }
  MacAddress mac() const;

  // A frame has arrived.
  virtual void receive(network::SharedFrame frame) = 0;
  // What frames that have arrived have lent is copied now.
  virtual void take_lent() {}
  // The time has come of a Fabric::schedule_poll(), perhaps of one that is no longer wanted.
  virtual void poll(TimeNs now) = 0;

 private:
  uint32_t index_;
};

}  // namespace rocemu::sim
