#include "emulator/daemon/administration.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/monotonic_clock.h"
#include "base/program_name.h"
#include "emulator/daemon/attachment/links.h"
#include "emulator/daemon/cm_service/cm_service.h"
#include "emulator/daemon/faults/fault_injector.h"
#include "emulator/daemon/shaking/nic_shaking.h"
#include "emulator/daemon/tracing/nic_tracing.h"
#include "emulator/daemon/view/cm_ids.h"
#include "emulator/daemon/view/link_report.h"
#include "emulator/daemon/view/metrics.h"
#include "emulator/daemon/view/status.h"
#include "emulator/daemon/view/sysfs_counters.h"

namespace rocemu::daemon {

NicAdministration::Report Administration::take_status() {
  std::vector<network::PortReport> network;
  if (nic_.fabric != nullptr) network = nic_.fabric->report_network(monotonic_now_ns());
  std::vector<shake::Counts> shaken;
  if (nic_.shaking != nullptr)
    for (const device::HcaConfig& device : nic_.devices)
      shaken.push_back(nic_.shaking->device(device.index).counts());
  return [&nic = nic_, snapshot = nic_.engine.snapshot(), links = report_links(nic_.ports),
          network = std::move(network), shaken = std::move(shaken)] {
    return to_json(Status{monotonic_now_ns() - nic.started_ns, nic.dma, nic.devices, snapshot,
                          links, network, nic.metrics, nic.cm == nullptr ? nullptr : &nic.cm->cm(),
                          nic.shaking == nullptr ? nullptr : &nic.shaking->settings(), shaken});
  };
}

NicAdministration::Report Administration::take_metrics() {
  return [&nic = nic_, snapshot = nic_.engine.snapshot()] {
    Metrics metrics{monotonic_now_ns() - nic.started_ns, nic.devices, nic.link_downs, snapshot};
    for (const DeviceSnapshot& device : snapshot.devices)
      for (const device::QpReport& qp : device.qps)
        if (qp.program != 0 && !metrics.programs.contains(qp.program))
          metrics.programs.emplace(qp.program, program_name(qp.program));
    return to_prometheus(metrics);
  };
}

NicAdministration::Report Administration::take_links() {
  return
      [&nic = nic_, links = report_links(nic_.ports)] { return links_to_json(links, nic.devices); };
}

device::Result<NicAdministration::Change> Administration::set_links(pid_t asked_by,
                                                                    const char* assignment) {
  if (!has_links()) return tl::unexpected(EOPNOTSUPP);
  auto parsed = impairment::parse_assignment(assignment);
  if (!parsed.assignment) return tl::unexpected(EINVAL);
  if (!names_a_device(*parsed.assignment, nic_.devices)) return tl::unexpected(ENODEV);
  spdlog::info("process {}: link {}", asked_by, impairment::to_text(*parsed.assignment));
  return Change([&nic = nic_, assignment = std::move(*parsed.assignment)] {
    daemon::set_links(nic.ports, assignment, nic.devices);
  });
}

device::Result<NicAdministration::AddedFaults> Administration::add_faults(pid_t asked_by,
                                                                          const char* text) {
  if (nic_.faults == nullptr) return tl::unexpected(EOPNOTSUPP);
  const auto ids = nic_.faults->add(text);
  if (!ids) return tl::unexpected(ids.error());
  spdlog::info("process {}: fault {}: {}", asked_by, ids->front(), text);
  return AddedFaults{ids->front(), static_cast<uint32_t>(ids->size())};
}

int Administration::clear_fault(uint32_t id) {
  return nic_.faults == nullptr ? EOPNOTSUPP : nic_.faults->clear(id);
}

void Administration::list_cm_ids(uint32_t device, uint32_t from, rocemu_resources& reply) {
  if (nic_.cm != nullptr) daemon::list_cm_ids(nic_.cm->cm(), device, from, reply);
}

uint32_t Administration::count_cm_ids(uint32_t device) {
  return nic_.cm == nullptr ? 0 : daemon::count_cm_ids(nic_.cm->cm(), device);
}

NicAdministration::NamedCounters Administration::name_counters(
    const transport::Counters& counters) {
  return hw_counters(counters);
}

device::Result<std::string> Administration::faults() {
  if (nic_.faults == nullptr) return tl::unexpected(EOPNOTSUPP);
  return nic_.faults->report();
}

int Administration::start_trace(pid_t asked_by, UniqueFd file, const char* filter,
                                uint64_t max_bytes) {
  if (nic_.tracing == nullptr) return EOPNOTSUPP;
  TraceSettings settings;
  if (!trace::parse_filter(filter, settings.filter, settings.devices).empty()) return EINVAL;
  if (max_bytes != 0) settings.max_bytes = max_bytes;
  const int error = nic_.tracing->start(std::move(file), settings);
  if (error == 0) spdlog::info("process {}: trace started {}", asked_by, filter);
  return error;
}

int Administration::stop_trace(std::function<void(const TraceEnd&)> ended) {
  if (nic_.tracing == nullptr) return EOPNOTSUPP;
  return nic_.tracing->stop([ended = std::move(ended)](const TraceResult& result) {
    ended({result.written_bytes, result.lost_records, result.error});
  });
}

}  // namespace rocemu::daemon
