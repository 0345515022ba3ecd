// The time of a flow that has the network for itself: from the post to the completion, with every
// cable busy with it as early as can be, and no window. A flow's real time over this one is its
// slowdown.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "emulator/experiment/settings/experiment.h"
#include "network/topology/routes.h"

namespace rocemu::experiment {

class IdealTime {
 public:
  // Both outlive it.
  IdealTime(const network::Description& network, const Nics& nics);

  // Precondition: the flow has a size, and there is a path.
  TimeNs of(uint32_t from, uint32_t to, uint64_t bytes, Verb verb) const;

 private:
  // A way by shortest paths; where there are several they are taken to be equal.
  std::vector<network::LinkSettings> path(uint32_t from, uint32_t to) const;
  uint64_t on_cable(uint64_t frame_bytes) const { return frame_bytes + overhead_bytes_; }
  struct Message {
    uint64_t bytes;
    uint32_t mtu_bytes;
    uint32_t first_header_bytes;
    uint32_t header_bytes;
  };
  // The time until the last byte of a message is at the far end.
  uint64_t arrival(const std::vector<network::LinkSettings>& path, const Message& message) const;

  const network::Topology& topology_;
  network::Routes routes_;
  std::vector<uint32_t> hosts_;
  const Nics& nics_;
  uint32_t overhead_bytes_;
};

}  // namespace rocemu::experiment
