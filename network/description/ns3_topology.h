// Topologies as the simulators of HPCC (alibaba-edu/High-Precision-Congestion-Control) and ConWeave
// (conweave-project/conweave-ns3) read them, which is numbers and words with white space between:
//
//   NODES SWITCHES LINKS
//   the numbers of the switches; all others are hosts
//   for each link: NODE NODE RATE DELAY ERRORS     0 320 100Gbps 1000ns 0.000000
//
// ERRORS is the probability that a frame is lost. Nodes are called by their numbers.
#pragma once

#include <optional>
#include <string>

#include "network/topology/topology.h"

namespace rocemu::network {

struct ParsedTopology {
  std::optional<Topology> topology;
  std::string error;  // names the line of the text
};

ParsedTopology parse_ns3_topology(const std::string& text);

}  // namespace rocemu::network
