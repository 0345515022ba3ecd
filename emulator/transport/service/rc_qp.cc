#include "emulator/transport/service/rc_qp.h"

#include "emulator/transport/responder/packet_checks.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

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

void RcQp::add_facts(TimeNs now, WaitFacts& facts) const {
  requester_.add_facts(now, facts);
  responder_.add_facts(facts);
}

void RcQp::on_new_state(QpState before) {
  switch (context_.state) {
    case QpState::reset:
      requester_.reset();
      responder_.reset();
      context_.telemetry_echo = nullptr;
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

void RcQp::on_new_attributes(bool of_another_path) {
  if (context_.state == QpState::ready_to_send || context_.state == QpState::send_queue_drain)
    requester_.on_attributes_changed(of_another_path);
}

void RcQp::on_packet(TimeNs now, const wire::Packet& packet) {
  Refusal refusal = check_connection(context_, packet);
  if (refusal == Refusal::none) {
    context_.tally.note_bytes(TraceEvent::payload_received,
                              static_cast<uint32_t>(packet.payload.size()));
    if (wire::selective::is_placed(packet.bth) &&
        context_.limits.recovery == Recovery::selective_repeat) [[unlikely]] {
      wire::Packet placed = packet;
      refusal = wire::selective::take_place(placed) ? dispatch(now, placed) : Refusal::no_place;
    } else {
      refusal = dispatch(now, packet);
    }
  }
  if (refusal != Refusal::none) note_refusal(context_, rule_of(refusal), packet.bth.psn);
}

// A run is taken as a whole where that is the same as taking its packets one by one: they have the
// length that packets have here, and begin with what is expected.
bool RcQp::takes_whole(const wire::Packet& run) const {
  if (!context_.may_run() || run.segment_bytes != context_.attributes.path_mtu_bytes ||
      context_.migration.watches())
    return false;
  return run.traits().kind == wire::MessageKind::response ? requester_.takes_whole(run)
                                                          : responder_.takes_whole(run);
}

// Hands a packet of the connection to the side that it is for.
Refusal RcQp::dispatch(TimeNs now, const wire::Packet& packet) {
  if (packet.traits().kind == wire::MessageKind::response) {
    if (context_.state == QpState::ready_to_receive) return Refusal::response_before_rts;
    requester_.on_response(now, packet);
  } else {
    if (context_.resources.send_only) return Refusal::request_to_requester;
    if (!packet.telemetry.empty()) [[unlikely]]
      note_telemetry(packet.telemetry);
    responder_.on_request(packet);
  }
  return Refusal::none;
}

void RcQp::note_telemetry(std::span<const std::byte> record) {
  if (context_.telemetry_echo == nullptr)
    context_.telemetry_echo = std::make_unique<TelemetryEcho>();
  context_.telemetry_echo->note(record);
}

void RcQp::on_timeout(TimeNs now, TimeNs answers_by) { requester_.on_timeout(now, answers_by); }

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
  if (kind == ScatterKind::response_ahead) {
    requester_.on_response_lost(psn);
  } else if (kind == ScatterKind::read_response) {
    requester_.on_scatter_failed(announced);
  } else {
    responder_.on_scatter_failed(kind, psn, announced);
  }
}

}  // namespace rocemu::transport
