#include "emulator/daemon/reports.h"

#include "base/monotonic_clock.h"
#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/view/link_report.h"
#include "emulator/daemon/view/status.h"

namespace rocemu::daemon {

Report take_status(const Nic& nic) {
  return [&nic, snapshot = nic.engine.snapshot(), links = report_links(nic.ports)] {
    return to_json(Status{monotonic_now_ns() - nic.started_ns, nic.dma, nic.devices, snapshot,
                          links, nic.cm == nullptr ? nullptr : &nic.cm->cm()});
  };
}

Report take_links(const Nic& nic) {
  return [&nic, links = report_links(nic.ports)] { return links_to_json(links, nic.devices); };
}

}  // namespace rocemu::daemon
