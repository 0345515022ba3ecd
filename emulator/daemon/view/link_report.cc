#include "emulator/daemon/view/link_report.h"

#include <nlohmann/json.hpp>

namespace rocemu::daemon {

using nlohmann::ordered_json;

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
