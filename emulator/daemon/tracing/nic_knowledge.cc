#include "emulator/daemon/tracing/nic_knowledge.h"

#include "base/net/text.h"
#include "emulator/daemon/tracing/counter_samples.h"
#include "emulator/daemon/tracing/device_tracer.h"
#include "emulator/device/fault_access.h"
#include "emulator/device/trace_access.h"
#include "emulator/trace/format/names.h"
#include "emulator/transport/responder/refusals.h"

namespace rocemu::daemon {
namespace {

void append(std::vector<trace::Record>& to, const std::vector<trace::Record>& records) {
  to.insert(to.end(), records.begin(), records.end());
}

}  // namespace

std::vector<trace::Record> names_of_nic(const std::vector<device::HcaConfig>& devices) {
  using trace::Table;
  std::vector<trace::Record> all = impairment_names();
  for (const device::HcaConfig& device : devices) {
    const auto number = static_cast<uint16_t>(device.index);
    append(all, trace::name_records(Table::device, number, device.name));
    for (const device::GidEntry& entry : device.port.gids)
      if (entry.gid != wire::Gid{})
        append(all, trace::name_records(Table::address, number, to_text(IpAddress(entry.gid))));
  }
  for (const transport::RefusalRule& rule : transport::kRefusalRules)
    append(all, trace::name_records(Table::rule, static_cast<uint16_t>(rule.refusal), rule.name));
  append(all, counter_names());
  return all;
}

uint16_t device_with_address(Engine& engine, const wire::Gid& gid) {
  if (gid == wire::Gid{}) return trace::kNoDevice;
  for (uint32_t i = 0; i < engine.device_count(); ++i)
    for (const device::GidEntry& entry : engine.hca(i).config().port.gids)
      if (entry.gid == gid) return static_cast<uint16_t>(i);
  return trace::kNoDevice;
}

pid_t program_of(device::Hca& hca, wire::Qpn qpn) {
  const auto view = device::FaultAccess(hca).qp(qpn);
  return view ? view->program : 0;
}

trace::QpQueues queues_of_qp(device::Hca& hca, wire::Qpn qpn) {
  const device::QueueHandles handles = device::TraceAccess(hca).queues_of(qpn);
  return {handles.send_cq, handles.receive_cq, handles.srq};
}

trace::Cause why_refused(device::Hca& hca, wire::Qpn qpn, uint32_t key, uint64_t address,
                         uint32_t length_bytes) {
  using device::KeyFault;
  switch (device::TraceAccess(hca).explain_key(qpn, key, address, length_bytes)) {
    case KeyFault::never_given:
      return trace::Cause::key_never_given;
    case KeyFault::gone:
      return trace::Cause::key_gone;
    case KeyFault::other_domain:
      return trace::Cause::key_other_domain;
    case KeyFault::out_of_range:
      return trace::Cause::key_out_of_range;
    case KeyFault::not_granted:
      return trace::Cause::key_not_granted;
    case KeyFault::none:
      break;
  }
  return trace::Cause::none;
}

}  // namespace rocemu::daemon
