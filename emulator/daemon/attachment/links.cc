#include "emulator/daemon/attachment/links.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

bool names(const impairment::Assignment& assignment, const device::HcaConfig& device) {
  return assignment.port == impairment::kAllPorts || assignment.port == device.name;
}

}  // namespace

bool names_a_device(const impairment::Assignment& assignment,
                    std::span<const device::HcaConfig> devices) {
  return std::ranges::any_of(
      devices, [&](const device::HcaConfig& device) { return names(assignment, device); });
}

void set_links(std::span<dpdk_io::LinkedPort* const> ports,
               const impairment::Assignment& assignment,
               std::span<const device::HcaConfig> devices) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!names(assignment, devices[i])) continue;
    for (const impairment::Direction direction : impairment::kDirections)
      if (assignment.covers(direction)) ports[i]->set_link(direction, assignment.spec);
  }
}

std::vector<LinkPair> report_links(std::span<dpdk_io::LinkedPort* const> ports) {
  std::vector<LinkPair> links;
  for (const dpdk_io::LinkedPort* port : ports)
    links.push_back(
        {port->link(impairment::Direction::transmit), port->link(impairment::Direction::receive)});
  return links;
}

}  // namespace rocemu::daemon
