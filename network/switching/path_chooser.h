// A switch's choice among ports that lead to a destination equally well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "network/switching/packet_headers.h"
#include "network/switching/settings.h"

namespace rocemu::network {

class PathChooser {
 public:
  // Switches have different seeds: with the same one a second stage would choose by what the first
  // has chosen by, and use a part of its links alone.
  PathChooser(const PathSettings& settings, uint64_t seed)
      : settings_(settings), seed_(seed), random_(seed) {
    if (settings.by == PathBy::flowlet) flowlets_.resize(kFlowlets);
  }

  // Precondition: there is a port.
  uint32_t choose(std::span<const uint32_t> ports, uint64_t flow_hash, TimeNs now) {
    if (ports.size() == 1) return ports.front();
    const auto count = static_cast<uint32_t>(ports.size());
    if (settings_.by == PathBy::packet) return ports[below(random_.next(), count)];
    const uint64_t hash = mix(flow_hash ^ seed_);
    if (settings_.by == PathBy::flow) return ports[below(hash, count)];
    Flowlet& flowlet = flowlets_[hash % kFlowlets];
    const bool goes_on = flowlet.port != kNoPort &&
                         now - flowlet.last <= settings_.flowlet_gap_ns &&
                         std::ranges::find(ports, flowlet.port) != ports.end();
    if (!goes_on) flowlet.port = ports[below(random_.next(), count)];
    flowlet.last = now;
    return flowlet.port;
  }

 private:
  static constexpr size_t kFlowlets = 4096;  // flows that share one go together
  static constexpr uint32_t kNoPort = ~uint32_t{0};
  struct Flowlet {
    TimeNs last = 0;
    uint32_t port = kNoPort;
  };

  PathSettings settings_;
  uint64_t seed_;
  Random random_;
  std::vector<Flowlet> flowlets_;
};

}  // namespace rocemu::network
