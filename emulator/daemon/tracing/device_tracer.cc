#include "emulator/daemon/tracing/device_tracer.h"

#include <rte_mbuf.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/verbs/numbers.h"
#include "emulator/device/fault_access.h"
#include "emulator/device/trace_access.h"
#include "emulator/trace/format/names.h"
#include "emulator/wire/packet.h"

namespace rocemu::daemon {
namespace {

using dpdk_io::DropReason;
using trace::Cause;

struct LossRow {
  DropReason reason;
  Cause cause;
  std::string_view name;
};
constexpr LossRow kLosses[] = {
    {DropReason::unknown_destination, Cause::no_place, "nobody has the address"},
    {DropReason::queue_full, Cause::queue_full, "the receiver's queue is full"},
    {DropReason::malformed, Cause::malformed, "malformed"},
    {DropReason::impairment_loss, Cause::dropped, "loss"},
    {DropReason::impairment_queue, Cause::queue_full, "queue of a link"},
    {DropReason::impairment_outage, Cause::link_down, "outage"},
    {DropReason::refused_by_kernel, Cause::no_place, "refused by the kernel"},
    {DropReason::network, Cause::queue_full, "a switch of the network"},
};

}  // namespace

std::vector<trace::Record> impairment_names() {
  std::vector<trace::Record> all;
  for (const LossRow& row : kLosses) {
    const auto records =
        trace::name_records(trace::Table::impairment, static_cast<uint16_t>(row.reason), row.name);
    all.insert(all.end(), records.begin(), records.end());
  }
  const auto by_fault =
      trace::name_records(trace::Table::impairment, trace::kLostByFault, "a fault");
  all.insert(all.end(), by_fault.begin(), by_fault.end());
  return all;
}

DeviceTracer::DeviceTracer(uint16_t index, device::Hca& hca, dpdk_io::LinkedPort& port,
                           size_t ring_records, trace::Ring::WhenFull when_full,
                           const trace::Filter& filter, trace::RecorderHost& host, Find find)
    : index_(index),
      hca_(hca),
      port_(port),
      ring_(ring_records, when_full),
      host_(host),
      find_(std::move(find)),
      recorder_(std::make_unique<trace::DeviceRecorder>(index, ring_, filter, host,
                                                        hca.endpoint().observer())) {}

void DeviceTracer::attach() {
  add_known_qps();
  counters_.begin(host_.now(), hca_.endpoint().counters());
  hca_.endpoint().set_observer(recorder_.get());
  next_watch_ = port_.loss_watch();
  port_.watch_losses(this);
}

void DeviceTracer::detach() {
  tell_polled();
  device::TraceAccess(hca_).unwatch();
  port_.watch_losses(next_watch_);
  hca_.endpoint().set_observer(recorder_->next());
}

void DeviceTracer::add_known_qps() {
  for (const device::QpView& view : device::FaultAccess(hca_).qps()) {
    const auto description = hca_.describe_qp(view.qpn);
    if (!description) continue;
    const device::QpAttr& attr = description->attr;
    trace::KnownQp known{.qpn = view.qpn,
                         .service = description->service,
                         .state = hca_.endpoint().state(view.qpn),
                         .requests_in_flight = hca_.endpoint().load(view.qpn).requests};
    if (view.connected) {
      known.peer_qpn = wire::Qpn{attr.dest_qp_num & wire::Psn::kMask};
      known.peer_gid = view.peer;
      known.path_mtu_bytes = attr.path_mtu == 0 ? 0 : verbs::mtu_bytes(attr.path_mtu);
      known.timers = {attr.retry_cnt, attr.rnr_retry, attr.timeout};
      known.min_rnr_timer = attr.min_rnr_timer;
    }
    recorder_->add_known(known);
  }
}

void DeviceTracer::watch(wire::Qpn qpn) { device::TraceAccess(hca_).watch(qpn, *this); }

void DeviceTracer::tell_polled() {
  device::TraceAccess(hca_).tell_polled();
  recorder_->flush();
}

void DeviceTracer::sample_counters() {
  counters_.sample(host_.now(), hca_.endpoint().counters(), *recorder_);
}

std::vector<trace::Record> DeviceTracer::take_last() {
  tell_polled();
  std::vector<trace::Record> kept;
  for (auto piece = ring_.peek(); !piece.empty(); piece = ring_.peek()) {
    kept.insert(kept.end(), piece.begin(), piece.end());
    ring_.release(piece.size());
  }
  std::vector<trace::Record> records = recorder_->describe_qps(kept);
  records.insert(records.end(), kept.begin(), kept.end());
  return records;
}

void DeviceTracer::on_polled(const transport::Completion& completion, uint32_t number,
                             TimeNs at_ns) noexcept {
  recorder_->on_polled(completion, number, at_ns == 0 ? host_.now() : at_ns, at_ns != 0);
}

void DeviceTracer::on_loss(const rte_mbuf* frame, DropReason reason) noexcept {
  if (next_watch_ != nullptr) next_watch_->on_loss(frame, reason);
  const std::span bytes(rte_pktmbuf_mtod(frame, const std::byte*), rte_pktmbuf_data_len(frame));
  wire::Packet packet;
  if (wire::parse_frame(bytes, packet) != wire::ParseError::none) return;
  DeviceTracer* const sender = find_(packet.ip.source);
  const LossRow& row = kLosses[static_cast<size_t>(reason)];
  trace::DeviceRecorder& recorder = sender == nullptr ? *recorder_ : *sender->recorder_;
  recorder.on_lost(packet, static_cast<uint16_t>(reason), row.cause, sender == nullptr);
}

}  // namespace rocemu::daemon
