// The impairments of the devices' links: from an assignment to the ports it names, and back. Port N
// is that of device N. What touches ports is called on the engine thread, or before it starts.
#pragma once

#include <span>
#include <vector>

#include "dpdk_io/port/linked_port.h"
#include "emulator/device/attributes/device_config.h"
#include "impairment/assignment.h"
#include "network/impaired_link.h"

namespace rocemu::daemon {

struct LinkPair {
  network::LinkReport transmit;
  network::LinkReport receive;

  const network::LinkReport& of(impairment::Direction direction) const {
    return direction == impairment::Direction::transmit ? transmit : receive;
  }
};

// An assignment to all devices names one, too.
bool names_a_device(const impairment::Assignment& assignment,
                    std::span<const device::HcaConfig> devices);

void set_links(std::span<dpdk_io::LinkedPort* const> ports,
               const impairment::Assignment& assignment,
               std::span<const device::HcaConfig> devices);

std::vector<LinkPair> report_links(std::span<dpdk_io::LinkedPort* const> ports);

}  // namespace rocemu::daemon
