#include "emulator/daemon/view/links.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rocemu::daemon {
namespace {

using nlohmann::ordered_json;

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

std::string links_to_json(std::span<const LinkPair> links,
                          std::span<const device::HcaConfig> devices) {
  ordered_json described = ordered_json::array();
  for (size_t i = 0; i < links.size(); ++i) {
    for (const impairment::Direction direction : impairment::kDirections) {
      const network::LinkReport& link = links[i].of(direction);
      described.push_back({{"device", devices[i].name},
                           {"direction", to_text(direction)},
                           {"spec", to_text(link.spec)},
                           {"frames", link.stats.frames},
                           {"lost", link.stats.lost},
                           {"lost_in_outage", link.stats.lost_in_outage},
                           {"lost_in_queue", link.stats.lost_in_queue},
                           {"duplicated", link.stats.duplicated},
                           {"corrupted", link.stats.corrupted}});
    }
  }
  return described.dump(2) + "\n";
}

}  // namespace rocemu::daemon
