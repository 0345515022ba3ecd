#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

Qp::Qp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
       const QpResources& resources)
    : context_{*this,
               endpoint.memory,
               endpoint.events,
               endpoint.deferred,
               endpoint.limits,
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
  context_.attributes = attributes;
  if (state == before) {
    on_new_attributes();
  } else {
    context_.set_state(state);
    if (state == QpState::reset) {
      context_.deferred.forget(*this);
      context_.migration = {};
    }
    on_new_state(before);
  }
  if (attributes.migration == MigrationRequest::rearm) context_.migration.rearm(attributes);
  if (attributes.migration == MigrationRequest::migrate) context_.migration.migrate(context_);
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
