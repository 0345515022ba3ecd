// `rocemu link set` and `rocemu link show`: impairments of a NIC that is up.
#include <iostream>

#include "emulator/cli/commands.h"
#include "emulator/cli/control_client.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/cli/running_nic.h"
#include "emulator/cli/status_view.h"
#include "impairment/assignment.h"

namespace rocemu::cli {

int link_set(const Options& options) {
  const std::string& device = options.link.front();
  const std::string direction = options.link.size() > 2 ? options.link[1] : "";
  const auto parsed = impairment::parse_assignment(device, direction, options.link.back());
  if (!parsed.assignment) throw Failure(parsed.error, kUsage);
  ControlClient(find_running_nic(options).socket())
      .set_link(impairment::to_text(*parsed.assignment));
  return kSuccess;
}

int link_show(const Options& options) {
  Json links = ControlClient(find_running_nic(options).socket()).links();
  if (!options.link.empty() && options.link.front() != impairment::kAllPorts) {
    Json chosen = Json::array();
    for (const Json& link : links)
      if (link.is_object() && link.value("device", "") == options.link.front())
        chosen.push_back(link);
    if (chosen.empty()) {
      throw Failure(
          "the NIC has no device '" + options.link.front() + "'; rocemu link show lists them",
          kUsage);
    }
    links = std::move(chosen);
  }
  std::cout << (options.json ? links.dump(2) + "\n" : links_text(links));
  return kSuccess;
}

}  // namespace rocemu::cli
