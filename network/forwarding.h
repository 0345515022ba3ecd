// Forwarding finds where an Ethernet switch sends a frame: to the port that has its destination
// MAC, or to all but the one that it came from. Which ports there are, and what is between the
// switch and a port, is the owner's affair: forward() calls back for each port that the frame
// leaves by. Output queues, and a choice among several paths, belong between this and the link
// (links.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/mac.h"
#include "network/mac_table.h"

namespace rocemu::network {

// Configured: the MACs are told (add_mac), and a unicast frame to another goes nowhere; one whose
// destination is at the port that it came from goes back there.
// Learning: the MACs are those of the frames that came from a port. A unicast frame to another is
// flooded, and what is at the sender's own port stays there (IEEE 802.1Q-2018, 8.6 to 8.8).
enum class Macs : uint8_t { configured, learned };

// `Frames` says what a frame is; network/README.md has what it must provide.
template <class Frames, class Port, Macs kMacs>
class Forwarding {
 public:
  using Frame = typename Frames::Frame;
  static constexpr size_t kMaxLearned = 4096;

  // The port outlives this.
  void add_port(Port& port) { ports_.push_back(&port); }
  void add_mac(uint64_t mac, Port& port) { macs_.set(mac, port); }
  Port* find(uint64_t mac) noexcept { return macs_.find(mac); }

  // Calls deliver(port, frame) for each port that the frame goes to. False when the MAC is
  // nobody's: the frame is still the caller's. Precondition: it has an Ethernet header.
  template <class Deliver>
  bool forward(Port& from, Frame frame, Deliver&& deliver) {
    if constexpr (kMacs == Macs::learned) learn(source_mac(Frames::bytes(frame)), from);
    const uint64_t mac = destination_mac(Frames::bytes(frame));
    if ((mac & kGroupBit) != 0) return flood(from, frame, deliver);
    Port* const to = macs_.find(mac);
    if constexpr (kMacs == Macs::learned) {
      if (to == nullptr) return flood(from, frame, deliver);
      if (to == &from) return false;
    } else if (to == nullptr) {
      return false;
    }
    deliver(*to, frame);
    return true;
  }

 private:
  template <class Deliver>
  bool flood(Port& from, const Frame& frame, Deliver& deliver) {
    Frames::share(frame, static_cast<unsigned>(ports_.size() - 1));
    for (Port* port : ports_)
      if (port != &from) deliver(*port, frame);
    Frames::release(frame);
    return true;
  }

  void learn(uint64_t mac, Port& port) {
    if ((mac & kGroupBit) == 0 && (macs_.size() < kMaxLearned || macs_.contains(mac)))
      macs_.set(mac, port);
  }

  std::vector<Port*> ports_;
  MacTable<Port> macs_;
};

}  // namespace rocemu::network
