#include "emulator/transport/qp/qp.h"

#include <algorithm>

#include "emulator/transport/qp/network_header.h"

namespace rocemu::transport {

namespace {

bool is_connected(wire::Transport transport) {
  return transport == wire::Transport::rc || transport == wire::Transport::xrc ||
         transport == wire::Transport::uc;
}

}  // namespace

Qp::Qp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
       const QpResources& resources)
    : context_{*this,
               endpoint.memory,
               endpoint.events,
               endpoint.deferred,
               endpoint.limits,
               endpoint.paths,
               transport,
               qpn,
               resources,
               {endpoint.tally, qpn},
               {},
               QpState::reset} {}

void Qp::modify(QpState state, const QpAttributes& attributes) {
  // A change to ERROR brings no attributes (IBTA vol 1, table 91), and answers that still leave
  // need the present ones.
  if (state == QpState::error) {
    enter_error();
    return;
  }
  const QpState before = context_.state;
  const Path& path = context_.attributes.path;
  const bool is_another_path =
      path.local_gid != attributes.path.local_gid || path.remote_gid != attributes.path.remote_gid;
  context_.attributes = attributes;
  if (state == before) {
    on_new_attributes(is_another_path);
  } else {
    context_.set_state(state);
    if (state == QpState::reset) {
      context_.deferred.forget(*this);
      context_.migration = {};
      context_.flow = nullptr;
    }
    if (state == QpState::ready_to_receive && is_connected(context_.transport))
      context_.flow = ControlledFlow::make(context_.limits, attributes, context_.qpn);
    on_new_state(before);
  }
  if (attributes.migration == MigrationRequest::rearm) context_.migration.rearm(attributes);
  if (attributes.migration == MigrationRequest::migrate) context_.migration.migrate(context_);
}

FlowReport Qp::report_flow(TimeNs now) const {
  const ControlledFlow& flow = *context_.flow;
  return {.qpn = context_.qpn,
          .remote_qpn = context_.attributes.remote_qpn,
          .rate_bps = flow.rate_bps(),
          .window_bytes = flow.algorithm().window_bytes(),
          .cnps = flow.cnps(),
          .values = flow.algorithm().view(now)};
}

WaitFacts Qp::wait_facts(TimeNs now) const {
  WaitFacts facts;
  add_facts(now, facts);
  if (context_.flow != nullptr) {
    const TimeNs held_until = context_.flow->held_until();
    if (held_until != kNever && held_until > now)
      facts.pace_left_ns = std::max(facts.pace_left_ns, held_until - now);
  }
  if (pacer_ != nullptr && !pacer_->may_send(now))
    facts.rate_limit_left_ns = pacer_->next_send() - now;
  return facts;
}

void Qp::on_cnp(TimeNs now, const wire::Packet& packet) {
  if (context_.flow == nullptr || !is_from_peer(packet, context_.attributes.path)) {
    context_.tally.note(TraceEvent::cnp_ignored);
    return;
  }
  context_.flow->on_cnp(now);
  const uint64_t rate_kbps = context_.flow->rate_bps() / 1000;
  context_.tally.note(TraceEvent::cnp_handled,
                      static_cast<uint32_t>(std::min<uint64_t>(rate_kbps, UINT32_MAX)));
}

std::optional<Cnp> Qp::notification_for(const wire::Packet& packet, uint8_t traffic_class) const {
  const QpAttributes& attributes = context_.attributes;
  if (!receives(context_.state) || packet.transport() != context_.transport) return std::nullopt;
  if (is_connected(context_.transport)) {
    if (!is_from_peer(packet, attributes.path)) return std::nullopt;
    const Path path{.headers = attributes.path.headers.with_traffic_class(traffic_class)};
    return Cnp{context_.qpn, path, attributes.remote_qpn, attributes.pkey};
  }
  // A group has no single flow, and its datagrams no address to answer from.
  const Addresses* const addresses = context_.resources.addresses;
  if (addresses == nullptr || !addresses->is_local(packet.ip.destination) ||
      packet.ext.deth.qkey != attributes.qkey)
    return std::nullopt;
  return Cnp{context_.qpn, Path{.headers = headers_of_answer(packet, traffic_class)},
             packet.ext.deth.source_qp, attributes.pkey};
}

void Qp::enter_error() {
  if (context_.state == QpState::error) return;
  context_.set_state(QpState::error);
  flush();
  flush_posted();
  if (context_.resources.receives_are_shared)
    context_.events.on_qp_event(context_.qpn, QpEvent::last_wqe_reached);
}

}  // namespace rocemu::transport
