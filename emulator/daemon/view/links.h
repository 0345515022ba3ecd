// The impairments of the devices' links, between their text and the ports. Port N is device N's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dpdk_io/port/linked_port.h"
#include "emulator/device/attributes.h"
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

// True of `all` as well.
bool names_a_device(const impairment::Assignment& assignment,
                    std::span<const device::HcaConfig> devices);

// The engine thread, or before it starts; so is report_links().
void set_links(std::span<dpdk_io::LinkedPort* const> ports,
               const impairment::Assignment& assignment,
               std::span<const device::HcaConfig> devices);

std::vector<LinkPair> report_links(std::span<dpdk_io::LinkedPort* const> ports);

// As control.h has it for ROCEMU_OP_LINK_SHOW.
std::string links_to_json(std::span<const LinkPair> links,
                          std::span<const device::HcaConfig> devices);

}  // namespace rocemu::daemon
