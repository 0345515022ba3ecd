// The requester's other half: what answers, and their absence, do to the requests under way (IBTA
// vol 1, 9.7.6 and 9.9.2).
#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/rc_requester.h"

namespace rocemu::transport {

void RcRequester::on_response(TimeNs now, const wire::Packet& packet) {
  if (context_.flow != nullptr) [[unlikely]]
    context_.flow->note_answer(packet);
  if (selective_ && take_selectively(now, packet)) [[unlikely]]
    return;
  switch (packet.operation()) {
    case wire::Operation::acknowledge:
      on_acknowledge(now, packet);
      break;
    case wire::Operation::atomic_acknowledge:
      on_atomic_acknowledge(now, packet);
      break;
    default:
      on_read_response(now, packet);
      break;
  }
}

void RcRequester::on_acknowledge(TimeNs now, const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const uint8_t syndrome = packet.ext.aeth.syndrome;
  if (!recovery_.is_in_flight(psn)) {
    context_.tally.note(TraceEvent::stale_ack, psn.value());
    return;
  }
  if (wire::syndrome::is_ack(syndrome)) {
    if (!acknowledge_before(now, psn + 1)) on_implied_nak(now);
  } else if (wire::syndrome::is_rnr(syndrome)) {
    on_rnr_nak(now, psn, syndrome & 0x1f);
  } else if (syndrome == wire::syndrome::kNakSequence) {
    on_sequence_nak(now, psn);
  } else if (wire::syndrome::is_nak(syndrome)) {
    on_fatal_nak(now, psn, syndrome);
  }
}

void RcRequester::on_sequence_nak(TimeNs now, wire::Psn psn) {
  context_.tally.note(TraceEvent::sequence_nak_received, psn.value());
  if (!acknowledge_before(now, psn)) {
    on_implied_nak(now);
    return;
  }
  if (recovery_.waits_for_receiver() || recovery_.copy_is_under_way(now, probe_.shortest_ns()))
    return;
  note_loss(now);
  round_trip_.on_sending_again(true);
  send_again();
}

void RcRequester::on_rnr_nak(TimeNs now, wire::Psn psn, uint8_t timer_code) {
  context_.tally.note(TraceEvent::rnr_nak_received, psn.value());
  if (!acknowledge_before(now, psn)) {
    on_implied_nak(now);
    return;
  }
  if (recovery_.waits_for_receiver()) return;
  if (recovery_.wait_for_receiver(now, timer_code)) {
    probe_.stop();
  } else {
    fail_oldest(WcStatus::rnr_retry_exceeded_error);
  }
}

void RcRequester::on_fatal_nak(TimeNs now, wire::Psn psn, uint8_t syndrome) {
  if (!acknowledge_before(now, psn)) {
    on_implied_nak(now);
    return;
  }
  fail_oldest(status_of_nak(syndrome));
}

// Every packet before `end` has arrived. False when that cannot be taken at its word, because a
// READ or atomic among them has not been answered.
bool RcRequester::acknowledge_before(TimeNs now, wire::Psn end) {
  const wire::Psn before = recovery_.una();
  bool plausible = true;
  while (!window_.empty()) {
    const Request& oldest = window_.oldest();
    if (!oldest.sends_packets()) break;
    if (is_read_or_atomic(oldest.work.opcode)) {
      plausible = !end.after(oldest.first_psn + oldest.responses);
      break;
    }
    if (end.before(oldest.end_psn())) {
      if (end.after(recovery_.una())) recovery_.acknowledge(end);
      break;
    }
    recovery_.acknowledge(oldest.end_psn());
    window_.complete_oldest(WcStatus::success);
  }
  if (recovery_.una() != before) progress(now, before);
  return plausible;
}

// A response to a READ or atomic: true when it is the one that is expected next, after all before
// it has been acknowledged. The oldest request is then the one that is answered.
bool RcRequester::accept_response_psn(TimeNs now, const wire::Packet& packet, bool atomic) {
  const wire::Psn psn = packet.bth.psn;
  if (!recovery_.is_in_flight(psn)) {
    context_.tally.note(TraceEvent::stale_ack, psn.value());
    return false;
  }
  if (!acknowledge_before(now, psn)) {
    on_implied_nak(now);
    return false;
  }
  if (window_.empty()) return false;
  const Request& oldest = window_.oldest();
  const bool expected = oldest.work.fault == WcStatus::success && oldest.started &&
                        psn == oldest.first_psn + oldest.responses &&
                        is_read_or_atomic(oldest.work.opcode) &&
                        atomic == is_atomic(oldest.work.opcode);
  if (!expected) context_.tally.note(TraceEvent::stale_ack, psn.value());
  return expected;
}

void RcRequester::on_read_response(TimeNs now, const wire::Packet& packet) {
  if (!accept_response_psn(now, packet, false)) return;
  Request& request = window_.oldest();
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t offset = request.responses * mtu;
  const uint32_t length = brings_data(request.work.opcode) ? request.work.length_bytes : 0;
  const uint32_t expected = std::min(packet.packets * mtu, length - offset);
  // The last packet must say so. A replay may begin with MIDDLE (Linux does so), and a request for
  // the rest is answered from FIRST again: any of them may stand before the end.
  const bool final_packet = request.responses + packet.packets == request.packets;
  const bool says_final = packet.operation() == wire::Operation::read_response_last ||
                          packet.operation() == wire::Operation::read_response_only;
  if (packet.payload.size() != expected || final_packet != says_final) {
    fail_oldest(WcStatus::bad_response_error);
    return;
  }
  if (!take_data(request, packet.payload, offset, packet.bth.psn)) {
    fail_oldest(WcStatus::local_protection_error);
    return;
  }
  responses_done(now, request, packet.packets);
}

void RcRequester::on_atomic_acknowledge(TimeNs now, const wire::Packet& packet) {
  if (!accept_response_psn(now, packet, true)) return;
  Request& request = window_.oldest();
  // The value goes to memory in the host's order (IBTA 9.4.5); it must outlive the collected
  // scatter, so it is settled before this returns.
  std::array<std::byte, sizeof(uint64_t)> value;
  std::memcpy(value.data(), &packet.ext.atomic_original, value.size());
  if (take_data(request, value, 0, packet.bth.psn)) {
    responses_done(now, request, 1);
  } else {
    fail_oldest(WcStatus::local_protection_error);
  }
  context_.deferred.flush(context_.memory);
}

// So many response packets have been taken.
void RcRequester::responses_done(TimeNs now, Request& request, uint32_t packets) {
  request.responses += packets;
  const wire::Psn before = recovery_.una();
  recovery_.acknowledge(request.first_psn + request.responses);
  if (request.responses == request.packets) window_.complete_oldest(WcStatus::success);
  progress(now, before);
}

bool RcRequester::take_data(const Request& request, std::span<const std::byte> data,
                            uint32_t offset_bytes, wire::Psn psn, ScatterKind kind) {
  return scatter(context_, domain_of(context_, request.work), request.work.sges.view(),
                 offset_bytes, data, kind, psn);
}

// The oldest unacknowledged PSN has moved on from `before`.
void RcRequester::progress(TimeNs now, wire::Psn before) {
  const wire::Psn una = recovery_.una();
  recovery_.on_progress(now);
  const std::optional<TimeNs> rtt = round_trip_.on_progress(now, una);
  congestion_.on_acknowledged(now, static_cast<uint32_t>(una.distance_from(before)), rtt);
  if (context_.flow != nullptr) [[unlikely]]
    context_.flow->on_acknowledged(now, una);
  switch (probe_.on_progress(una, recovery_.sent_end(), rtt, congestion_window())) {
    case ProbeTimer::Next::go_on:
      break;
    case ProbeTimer::Next::probe:
      send_probe();
      break;
    case ProbeTimer::Next::resume:
      recovery_.seek_end();
      break;
  }
  probe_.restart(now, recovery_.answer_is_owed(), recovery_.in_flight());
  // The answer may be to packets that the cursor was about to send again.
  window_.skip_to(una);
}

void RcRequester::on_implied_nak(TimeNs now) {
  if (!recovery_.take_implied_nak()) return;
  context_.tally.note(TraceEvent::implied_nak, recovery_.una().value());
  note_loss(now);
  send_again();
}

void RcRequester::note_loss(TimeNs now) {
  if (context_.flow == nullptr) [[likely]] {
    congestion_.on_nak(now);
  } else {
    context_.flow->on_loss(now);
  }
}

void RcRequester::on_timeout(TimeNs now, TimeNs answers_by) {
  pace_.on_timeout(now);
  recovery_.put_off(answers_by);
  const bool waited = recovery_.waits_for_receiver();
  if (recovery_.on_timeout(now)) {
    context_.tally.note(TraceEvent::ack_timeout, recovery_.una().value());
    if (context_.flow == nullptr) [[likely]] {
      congestion_.on_timeout(now);
    } else {
      context_.flow->on_ack_timeout(now);
    }
    round_trip_.on_sending_again(!probe_.knows_round_trip());
    pace_.hold(now, packet_interval_ns());
    send_again();
  } else if (probe_.deadline() <= now && probe_.expire(now, context_.attributes.timeout != 0)) {
    context_.tally.note(TraceEvent::early_retransmission, recovery_.una().value());
    if (context_.flow == nullptr) [[likely]] {
      congestion_.on_overdue(now);
    } else {
      context_.flow->on_loss(now);
    }
    round_trip_.on_sending_again(!probe_.knows_round_trip());
    pace_.hold(now, packet_interval_ns());
    send_probe();
  }
  if (repeats_selectively()) [[unlikely]]
    on_selective_timeout(now, waited);
}

// A packet was lost: sends again what is in flight, over the alternate path when this one has used
// up the retries (IBTA vol 1, 17.2.8), or gives up.
void RcRequester::send_again() {
  if (recovery_.retry()) {
    probe_.stop();
    if (repeats_selectively()) give_up_in_flight();
  } else if (!context_.migration.migrate(context_)) {
    fail_oldest(WcStatus::retry_exceeded_error);
  }
}

// Packets in flight may be lost on the path that was left, and are sent again.
void RcRequester::on_path_migrated() {
  change_path();
  recovery_.begin_anew();
  probe_.stop();
  if (repeats_selectively()) give_up_in_flight();
}

void RcRequester::send_probe() {
  recovery_.seek_oldest();
  probe_.begin(recovery_.una(),
               !window_.empty() && is_read_or_atomic(window_.oldest().work.opcode));
}

void RcRequester::fail_oldest(WcStatus status) {
  if (window_.empty()) return;
  window_.complete_oldest(status);
  context_.qp.enter_error();
  context_.events.on_qp_error(context_.qpn);
}

void RcRequester::on_scatter_failed(bool announced) {
  if (!announced) {
    fail_oldest(WcStatus::local_protection_error);
    return;
  }
  context_.qp.enter_error();
  context_.events.on_qp_error(context_.qpn);
}

}  // namespace rocemu::transport
