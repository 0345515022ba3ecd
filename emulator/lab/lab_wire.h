// The wire of a lab whose network is bad: an Ethernet switch between the hosts' interfaces, or a
// network of switches (network/switching), with a link to each host that has impairments, one
// direction at a time (network/). It carries whatever the hosts send, RoCE, TCP and ARP alike. Time
// comes in as a parameter; frames go out by a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/time.h"
#include "impairment/assignment.h"
#include "network/description/description.h"
#include "network/forwarding.h"
#include "network/impaired_link.h"
#include "network/links.h"
#include "network/shared_frame.h"
#include "network/switching/network.h"

namespace rocemu::lab {

class LabWire {
 public:
  static constexpr size_t kMaxUnderWay = 16384;  // frames; what is more is lost
  using Deliver = std::function<void(unsigned host, std::span<const std::byte> frame)>;

  LabWire(unsigned hosts, Deliver deliver);

  // From now on the switch is this network, whose hosts are those of the lab in their order. False
  // when it has fewer. Times of failures count from `now`.
  bool set_network(const network::Description& description, TimeNs now);

  // Host N is called h(N+1). False when the assignment names none.
  bool impair(const impairment::Assignment& assignment);

  // A host has sent a frame. `now` never goes back.
  void on_frame(TimeNs now, unsigned host, std::span<const std::byte> frame);
  // Hands out what has arrived by now.
  void advance(TimeNs now);
  TimeNs next_arrival_ns() const;

 private:
  struct Host {
    network::PortLinks links;
    unsigned number;
  };
  using Frame = network::SharedFrame;
  using Links = network::Links<network::SharedFrames, Host, LabWire>;
  using Network = network::Network<network::SharedFrames, LabWire>;
  friend Links;
  friend Network;

  void arrive(Host& host, impairment::Direction direction, TimeNs now, const Frame& frame);
  void lose(Host&, impairment::Direction, impairment::Loss, const Frame&) {}
  void deliver(uint32_t host, TimeNs now, const Frame& frame);
  void lose(uint32_t, network::NetworkLoss, const Frame&) {}

  Deliver deliver_;
  std::vector<Host> hosts_;
  network::Forwarding<network::SharedFrames, Host, network::Macs::learned> forwarding_;
  Links links_{*this, kMaxUnderWay};
  std::unique_ptr<Network> network_;  // nullptr: all hosts are at one switch, which is perfect
};

}  // namespace rocemu::lab
