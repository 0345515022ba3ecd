#include "emulator/daemon/faults/device_faults.h"

#include <algorithm>

#include "base/verbs/numbers.h"
#include "emulator/daemon/faults/queue_taps.h"
#include "emulator/device/fault_access.h"

namespace rocemu::daemon {
namespace {

using device::FaultAccess;
using fault::Kind;
using fault::Spec;

constexpr uint64_t kBitsPerKbit = 1000;

}  // namespace

DeviceFaults::DeviceFaults(device::Hca& hca, PortFrameSink& frames, ArmedFaults& armed,
                           FaultSource& faults)
    : hca_(hca),
      frames_(frames),
      armed_(armed),
      faults_(faults),
      port_(frames.port(), hca, faults) {}

// The QPs that a fault is about.
std::vector<device::QpView> DeviceFaults::chosen(const Spec& spec) const {
  std::vector<device::QpView> qps = FaultAccess(hca_).qps();
  std::erase_if(qps, [&](const device::QpView& qp) {
    return !armed_.concerns(
        spec, {.device = hca_.config().index,
               .qpn = qp.qpn.value,
               .program = qp.program,
               .peer = qp.connected ? std::optional<IpAddress>(qp.peer) : std::nullopt});
  });
  return qps;
}

void DeviceFaults::follow(TimeNs now_ns) {
  FaultAccess access(hca_);
  needs_ = armed_.needs(hca_.config().index);
  if (needs_.completions) {
    access.tap_rings(
        [&](auto ring) { return std::make_unique<CompletionTap>(std::move(ring), hca_, faults_); });
  } else {
    access.untap_rings();
  }
  if (needs_.requests) {
    access.tap_sends([&](wire::Qpn qpn, transport::SendQueue& queue) {
      return std::make_unique<RequestTap>(queue, qpn, hca_, faults_);
    });
  } else {
    access.untap_sends();
  }
  if (needs_.events) {
    const std::vector<device::ContextView> contexts = access.contexts();
    access.tap_events([&](device::ContextId id, auto events) {
      const pid_t program = std::ranges::find(contexts, id, &device::ContextView::id)->program;
      return std::make_unique<AsyncEventTap>(std::move(events), id, program, hca_.config().index,
                                             faults_);
    });
  } else {
    access.untap_events();
  }
  follow_port(now_ns);
  follow_rates();
}

void DeviceFaults::follow_port(TimeNs now_ns) {
  const bool looks = needs_.port();
  if (looks != looks_at_frames_) port_.want_single_frames(looks);
  looks_at_frames_ = looks;
  port_.set_needs(now_ns, needs_);
  frames_.use_port(looks ? static_cast<dpdk_io::Port&>(port_) : port_.inner());
}

// QPs of which an active fault says that they are slow; the others have their programs' rates back.
void DeviceFaults::follow_rates() {
  FaultAccess access(hca_);
  std::unordered_set<uint32_t> slow;
  std::vector<Spec> active;
  armed_.for_each_active(hca_.config().index, [&](const Spec& spec) {
    if (spec.what.kind == Kind::slow && !spec.whom.everybody()) active.push_back(spec);
  });
  for (const Spec& spec : active)
    for (const device::QpView& qp : chosen(spec)) {
      slow.insert(qp.qpn.value);
      const uint64_t kbps = spec.what.rate_bits_per_s / kBitsPerKbit;
      access.limit_rate(qp.qpn,
                        static_cast<uint32_t>(std::clamp<uint64_t>(kbps, 1, device::kMaxRateKbps)));
    }
  for (const uint32_t qpn : slowed_)
    if (!slow.contains(qpn)) access.limit_rate(wire::Qpn{qpn}, std::nullopt);
  slowed_ = std::move(slow);
}

void DeviceFaults::begin(const Spec& spec) {
  switch (spec.what.kind) {
    case Kind::qp_error:
      for (const device::QpView& qp : chosen(spec))
        FaultAccess(hca_).fail_qp(qp.qpn, static_cast<transport::WcStatus>(spec.what.status));
      break;
    case Kind::cq_error:
      fail_cqs(spec);
      break;
    case Kind::device_fatal:
      lose_device();
      break;
    default:
      break;
  }
}

// Fails the CQs of the QPs, or of the programs, that the fault is about.
void DeviceFaults::fail_cqs(const Spec& spec) {
  FaultAccess access(hca_);
  for (const device::QpView& qp : chosen(spec)) access.fail_cqs_of_qp(qp.qpn);
  if (spec.whom.qpn || spec.whom.peer) return;
  for (const device::ContextView& context : access.contexts())
    if (armed_.concerns(spec, {.device = hca_.config().index, .program = context.program}))
      access.fail_cqs_of_context(context.id);
}

// Flushes what is under way, as drivers do it, so that nobody waits for it.
void DeviceFaults::lose_device() {
  FaultAccess access(hca_);
  for (const device::QpView& qp : access.qps()) access.flush_qp(qp.qpn);
  access.close_channels(faults_.now_ns());
  access.tell_all(verbs::async_event::kDeviceFatal);
  for (const device::ContextView& context : access.contexts())
    last_lost_ = std::max(last_lost_, context.id);
}

void DeviceFaults::touch_rings() { FaultAccess(hca_).touch_rings(); }

void DeviceFaults::send(const LateEvent& event) {
  FaultAccess(hca_).send_event(event.context, event.element, event.event_type);
}

}  // namespace rocemu::daemon
