#include "emulator/transport/service/rc_qp.h"

#include <algorithm>

namespace rocemu::transport {

namespace {

bool is_response(wire::Operation op) {
  using enum wire::Operation;
  return op >= read_response_first && op <= atomic_acknowledge;
}

}  // namespace

RcQp::RcQp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
           const QpResources& resources)
    : Qp(endpoint, transport, qpn, resources), requester_(context_), responder_(context_) {}

bool RcQp::draining() const {
  return context_.state == QpState::send_queue_drain && !requester_.drained();
}

QpLoad RcQp::load() const {
  QpLoad load;
  requester_.add_load(load);
  responder_.add_load(load);
  return load;
}

void RcQp::modify(QpState state, const QpAttributes& attributes) {
  // Brings no attributes (IBTA vol 1, table 91): answers that still leave need those that are
  // there.
  if (state == QpState::error) {
    enter_error();
    return;
  }
  const QpState before = context_.state;
  context_.attributes = attributes;
  if (state == before) {
    if (state == QpState::ready_to_send || state == QpState::send_queue_drain)
      requester_.on_attributes_changed();
    return;
  }
  context_.state = state;
  switch (state) {
    case QpState::reset:
      requester_.reset();
      responder_.reset();
      context_.deferred.forget(*this);
      break;
    case QpState::ready_to_receive:
      responder_.start();
      break;
    case QpState::ready_to_send:
      if (before == QpState::ready_to_receive) requester_.start();
      break;
    case QpState::send_queue_drain:
      requester_.note_draining();
      break;
    default:
      break;
  }
}

void RcQp::on_packet(TimeNs now, const wire::Packet& packet) {
  if (!receives()) {
    ++context_.counters.rx_no_qp;
    return;
  }
  const Path& path = context_.attributes.path;
  if (packet.transport() != context_.transport || packet.ip.source != path.remote_gid ||
      packet.ip.destination != path.local_gid || !pkey_matches(packet)) {
    ++context_.counters.rx_mismatched;
    return;
  }
  context_.counters.rx_payload_bytes += packet.payload.size();
  if (is_response(packet.operation())) {
    if (context_.state == QpState::ready_to_receive) {
      ++context_.counters.rx_no_qp;
      return;
    }
    requester_.on_response(now, packet);
  } else if (context_.resources.send_only) {
    ++context_.counters.rx_mismatched;
  } else {
    responder_.on_request(packet);
  }
}

void RcQp::on_timeout(TimeNs now) { requester_.on_timeout(now); }

Turn RcQp::transmit(TimeNs now, Burst& burst) {
  responders_turn_ = !responders_turn_;
  if (responders_turn_) {
    const Turn turn = responder_.transmit(burst);
    return turn == Turn::idle ? requester_.transmit(now, burst) : turn;
  }
  const Turn turn = requester_.transmit(now, burst);
  return turn == Turn::idle ? responder_.transmit(burst) : turn;
}

TimeNs RcQp::deadline() const { return requester_.deadline(); }

void RcQp::flush() {
  requester_.flush();
  responder_.flush();
}

void RcQp::flush_posted() {
  requester_.flush_posted();
  responder_.flush_posted();
}

void RcQp::on_fetch_failed(Side side, wire::Psn psn) {
  if (side == Side::requester) {
    requester_.on_fetch_failed(psn);
  } else {
    responder_.on_fetch_failed(psn);
  }
}

void RcQp::on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) {
  if (context_.state == QpState::error) return;
  if (kind == ScatterKind::read_response) {
    requester_.on_scatter_failed(announced);
  } else {
    responder_.on_scatter_failed(kind, psn, announced);
  }
}

}  // namespace rocemu::transport
