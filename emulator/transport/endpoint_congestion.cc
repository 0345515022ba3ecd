// The endpoint's answer to congestion that packets tell of: marks are answered with CNPs, and CNPs
// go to the flow of their QP.
#include <cstring>

#include "emulator/transport/endpoint.h"
#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

// True when the packet was nothing else than a notification.
bool Endpoint::on_congestion(Qp& qp, TimeNs now, const wire::Packet& packet) {
  if (packet.bth.opcode == wire::kCnpOpcode) {
    qp.on_cnp(now, packet);
    return true;
  }
  const auto cnp = qp.notification_for(packet, notification_.traffic_class());
  if (!cnp) return false;
  qp.tally().note(TraceEvent::ecn_marked, packet.bth.psn.value());
  if (notification_.on_marked(now, {packet.ip.source, cnp->to, qp.qpn()}))
    notification_.queue(*cnp);
  return false;
}

std::vector<FlowReport> Endpoint::report_flows(TimeNs now, size_t most) const {
  std::vector<FlowReport> reports;
  if (limits_.congestion.kind == nullptr) return reports;
  qps_.visit_while([&](const Qp& qp) {
    if (qp.flow() != nullptr) reports.push_back(qp.report_flow(now));
    return reports.size() < most;
  });
  return reports;
}

std::vector<RecoveryReport> Endpoint::report_recoveries(size_t most) const {
  std::vector<RecoveryReport> reports;
  if (limits_.recovery == Recovery::go_back_n) return reports;
  qps_.visit_while([&](const Qp& qp) {
    reports.push_back({qp.qpn(), qp.load().recovery});
    return reports.size() < most;
  });
  return reports;
}

std::optional<uint64_t> Endpoint::allowed_rate_bps(wire::Qpn qpn) const {
  const Qp* const qp = qps_.find(qpn);
  if (qp == nullptr || qp->flow() == nullptr) return std::nullopt;
  return qp->flow()->rate_bps();
}

// Sends as many of the queued CNPs as the burst has room for.
void Endpoint::send_cnps() {
  while (!notification_.empty() && !burst_.full()) {
    const Cnp& cnp = notification_.next();
    if (Qp* const qp = qps_.find(cnp.from)) {
      const wire::Bth bth{
          .opcode = wire::kCnpOpcode, .pkey = cnp.pkey, .becn = true, .destination_qp = cnp.to};
      std::byte* const reserved =
          burst_.add(*qp, Side::responder, cnp.path, bth, {}, wire::kCnpReservedBytes);
      if (reserved == nullptr) return;
      std::memset(reserved, 0, wire::kCnpReservedBytes);
      qp->tally().note(TraceEvent::cnp_sent);
    }
    notification_.pop();
  }
}

}  // namespace rocemu::transport
