// Topologies by their kind. Hosts come first and are called h0, h1 and so on.
#pragma once

#include <cstdint>

#include "network/topology/topology.h"

namespace rocemu::network {

// Links between hosts and switches, and those between switches.
struct KindLinks {
  LinkSettings host;
  LinkSettings fabric;
};

// Two hosts and a cable.
Topology pair(const LinkSettings& link);

// `left` hosts at switch s0 and `right` at s1, with one link between the two.
Topology dumbbell(uint32_t left, uint32_t right, const KindLinks& links);

// All at one switch, s0.
Topology star(uint32_t hosts, const LinkSettings& link);

// Each of `leaves` (leaf0 and on) has `hosts_per_leaf` and one link to each of `spines` (spine0 and
// on). The hosts of a leaf can send more than its uplinks carry, by the oversubscription.
Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const KindLinks& links);

// k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts (Al-Fares et
// al., SIGCOMM 2008). `hosts_per_edge` is k/2, or more for oversubscription. Precondition: k is
// even.
Topology fat_tree(uint32_t k, uint32_t hosts_per_edge, const KindLinks& links);

}  // namespace rocemu::network
