#include "emulator/inspection/inspection.h"

#include <utility>

#include "emulator/inspection/inspected_memory.h"
#include "emulator/inspection/inspected_queues.h"
#include "emulator/transport/qp/rc_tables.h"

namespace rocemu::inspection {

Inspection::Inspection(uint32_t devices) {
  for (uint32_t i = 0; i < devices; ++i)
    inspectors_.push_back(std::make_unique<Inspector>(i, all_, clock_));
  for (const auto& inspector : inspectors_) all_.push_back(inspector.get());
}

device::HcaParts Inspection::decorate(uint32_t device, device::HcaParts parts) {
  Inspector& inspector = *inspectors_.at(device);
  device::HcaParts decorated;
  decorated.memory = [&inspector, make = parts.memory](device::MemoryRegions& regions) {
    inspector.watch(regions);
    return std::make_unique<InspectedMemory>(make(regions), inspector);
  };
  decorated.endpoint = [&inspector, make = parts.endpoint](
                           transport::Memory& memory, transport::EventSink& events,
                           const transport::TransportLimits& limits, uint32_t max_qps) {
    auto endpoint = make(memory, events, limits, max_qps);
    endpoint->set_observer(&inspector);
    return endpoint;
  };
  decorated.queues =
      [&inspector, make = std::move(parts.queues)](
          std::unique_ptr<device::WorkQueues> queues) -> std::unique_ptr<device::WorkQueues> {
    if (make) queues = make(std::move(queues));
    return std::make_unique<InspectedQueues>(std::move(queues), inspector);
  };
  return decorated;
}

void Inspection::watch(uint32_t device, const device::Hca& hca) {
  inspectors_.at(device)->watch(hca);
}

device::Result<QpReport> Inspection::describe_qp(uint32_t device, device::ContextId context,
                                                 device::Handle qp) const {
  const Inspector& inspector = *inspectors_.at(device);
  const auto qpn = inspector.hca()->qp_number(context, qp);
  if (!qpn) return tl::unexpected(qpn.error());
  QpReport report;
  report.qpn = *qpn;
  const QpRecord* const record = inspector.find(*qpn);
  if (record == nullptr) return report;
  report.meeting = record->meeting;
  report.receives = record->receives;
  const auto description = inspector.hca()->describe_qp(*qpn);
  const TimeNs wait_ns = transport::rnr_timer_ns(description->attr.min_rnr_timer);
  report.waited_before_first_ns = wait_ns * report.receives.missing_before_first;
  report.waited_ns = wait_ns * report.receives.missing;
  if (!report.meeting.met) report.swapped_peer = find_swapped_peer(device, *qpn);
  return report;
}

// Numbers have 24 bits, in the lower part of a word: a word with its bytes swapped has them in the
// upper part, and programs shift them back or do not.
wire::Qpn Inspection::find_swapped_peer(uint32_t device, wire::Qpn qpn) const {
  const auto own = inspectors_[device]->hca()->describe_qp(qpn);
  if (!own || own->attr.dest_qp_num == 0) return {};
  const wire::Qpn swapped{__builtin_bswap32(own->attr.dest_qp_num) >> 8};
  for (const Inspector* there : all_) {
    if (!there->has_address(own->attr.ah.dgid)) continue;
    if (there->hca()->describe_qp(wire::Qpn{own->attr.dest_qp_num})) return {};
    return there->hca()->describe_qp(swapped) ? swapped : wire::Qpn{};
  }
  return {};
}

bool Inspection::may_be_written(uint32_t device, device::ContextId context, uint64_t address,
                                uint64_t length_bytes) const {
  const Inspector& inspector = *inspectors_.at(device);
  const dma::AddressSpace* const memory = inspector.hca()->memory_of(context);
  return memory == nullptr || inspector.written().may_have(memory, address, length_bytes);
}

std::vector<Finding> Inspection::take_findings(uint32_t device, device::ContextId context,
                                               size_t most) {
  return inspectors_.at(device)->findings().take(context, most);
}

}  // namespace rocemu::inspection
