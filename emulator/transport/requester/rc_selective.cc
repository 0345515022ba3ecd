// The requester's part of selective repeat: what answers and timeouts do instead of what
// rc_completer.cc has them do. selective_repeat.h has the rules.
#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/rc_requester.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

// True when the answer is dealt with by selective repeat, which may begin with it.
bool RcRequester::take_selectively(TimeNs now, const wire::Packet& packet) {
  if (!selective_->active()) {
    if (!wire::selective::is_understood_by_sender(packet.bth) ||
        !recovery_.is_in_flight(packet.bth.psn))
      return false;
    selective_->begin(now, window_, recovery_.una(), recovery_.sent_end());
    selective_->note_cursor(false);
    if (const auto rtt = round_trip_.on_progress(now, packet.bth.psn + 1))
      selective_->on_round_trip(*rtt);
    restart_selective_timer(now);
    probe_.stop();
  }
  if (!recovery_.is_in_flight(packet.bth.psn)) {
    context_.tally.note(TraceEvent::stale_ack, packet.bth.psn.value());
  } else if (packet.operation() == wire::Operation::acknowledge ||
             wire::selective::is_selective_nak(packet)) {
    on_report(now, packet);
  } else {
    on_selective_answer(now, packet);
  }
  return true;
}

void RcRequester::on_report(TimeNs now, const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const uint8_t syndrome = packet.ext.aeth.syndrome;
  if (packet.payload.size() > Scoreboard::kMaxPsns / 8) {  // no responder holds so many
    context_.tally.note(TraceEvent::stale_ack, psn.value());
    return;
  }
  Scoreboard::Report report{psn, true, packet.payload};
  if (wire::syndrome::is_ack(syndrome)) report = {psn + 1, false, {}};
  selective_->board().on_report(now, report);
  if (syndrome == wire::syndrome::kNakSequence) {
    context_.tally.note(TraceEvent::sequence_nak_received, psn.value());
    // A NAK that does not tell what has been taken says that something behind the gap was not. A
    // copy is missing that came when the peer had no room or receive for it: nothing later tells.
    if (packet.payload.empty() || selective_->board().is_copy(psn))
      selective_->board().give_up_unless_copied(psn, now, selective_->copy_rtt_ns());
    // What the peer had no receive for behind the gap, it has dropped and will not tell of.
    const Request* const missing = find_request(psn);
    if (packet.payload.empty() && missing != nullptr && takes_receive(missing->work.opcode))
      selective_->give_up_older(now, psn);
    selective_->board().give_up_plain(psn);
  }
  finish_answer(now, recovery_.una());
  if (context_.state == QpState::error) return;
  if (wire::syndrome::is_rnr(syndrome)) {
    on_selective_rnr(now, psn, syndrome & 0x1f);
  } else if (wire::syndrome::is_nak(syndrome) && syndrome != wire::syndrome::kNakSequence) {
    end_ = {psn, status_of_nak(syndrome)};
    fail_when_due();
  }
}

// Answers to READs and atomics before it may be missing, which are waited for, and asked for again,
// all the same.
void RcRequester::on_selective_rnr(TimeNs now, wire::Psn psn, uint8_t timer_code) {
  context_.tally.note(TraceEvent::rnr_nak_received, psn.value());
  if (recovery_.waits_for_receiver() || psn.before(selective_->board().expected())) return;
  if (recovery_.wait_for_receiver(now, timer_code)) {
    selective_->board().give_up_from(psn);
    selective_->note_cursor(false);
    selective_->pause_timer();
  } else {
    end_ = {psn, WcStatus::rnr_retry_exceeded_error};
    fail_when_due();
  }
}

// The connection has ended at a PSN: so does its request, when all before it are over.
void RcRequester::fail_when_due() {
  if (end_ && !window_.empty() && window_.oldest().sends_packets() &&
      !end_->psn.before(window_.oldest().first_psn) && end_->psn.before(window_.oldest().end_psn()))
    fail_oldest(end_->status);
}

RcRequester::Request* RcRequester::find_request(wire::Psn psn) {
  for (uint32_t i = 0; i < window_.size(); ++i) {
    Request& request = window_[i];
    if (!psn.before(request.first_psn) && psn.before(request.end_psn())) return &request;
  }
  return nullptr;
}

// Data of a READ or an atomic, whichever of them.
void RcRequester::on_selective_answer(TimeNs now, const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  Request* const request = find_request(psn);
  const bool atomic = packet.operation() == wire::Operation::atomic_acknowledge;
  if (request == nullptr || request->work.fault != WcStatus::success || !request->started ||
      !is_read_or_atomic(request->work.opcode) || atomic != is_atomic(request->work.opcode) ||
      selective_->board().is_answered(psn) || !selective_->board().is_held(psn)) {
    context_.tally.note(TraceEvent::stale_ack, psn.value());
    if (request != nullptr && request->started && request->work.opcode == WorkOpcode::read &&
        !selective_->board().is_held(psn))
      selective_->board().note_answer_beyond(psn);
    return;
  }
  // It acknowledges all before it; of READs and atomics among those the answers may be to come.
  const wire::Psn before = recovery_.una();
  selective_->board().advance_expected(now, psn);
  complete_delivered();
  const bool is_next = psn == recovery_.una() && request == &window_.oldest();
  // The value of an atomic goes to memory in the host's order (IBTA 9.4.5).
  std::array<std::byte, sizeof(uint64_t)> value;
  std::memcpy(value.data(), &packet.ext.atomic_original, value.size());
  const auto index = static_cast<uint32_t>(psn.distance_from(request->first_psn));
  const uint32_t offset = index * context_.attributes.path_mtu_bytes;
  const uint32_t length = brings_data(request->work.opcode) ? request->work.length_bytes : 0;
  const std::span<const std::byte> data =
      atomic ? std::span<const std::byte>(value) : packet.payload;
  const uint32_t expected =
      atomic ? kAtomicBytes : std::min(context_.attributes.path_mtu_bytes, length - offset);
  WcStatus status = WcStatus::success;
  if (data.size() != expected) {
    status = WcStatus::bad_response_error;
  } else if (!take_data(*request, data, offset, psn,
                        is_next ? ScatterKind::read_response : ScatterKind::response_ahead)) {
    status = WcStatus::local_protection_error;
  }
  if (status != WcStatus::success) {
    if (atomic) context_.deferred.flush(context_.memory);
    // A fault of a later request is found again when that request is the oldest.
    if (is_next && context_.state != QpState::error) fail_oldest(status);
    return;
  }
  selective_->board().on_answer(now, psn);
  if (!is_next && !atomic) note_answer(*request);
  // `value` ends with this function, so it is stored now. If it cannot be, it counts as lost again.
  if (atomic) context_.deferred.flush(context_.memory);
  // Data that was put in place ahead of this answer has to be there for certain before its request
  // completes.
  if (is_next && selective_->take_unsettled()) context_.deferred.flush(context_.memory);
  if (!is_next) selective_->note_unsettled();
  if (context_.state != QpState::error) finish_answer(now, before);
}

// Data of a READ has come ahead of its turn: it may have been the last that was missing.
void RcRequester::note_answer(Request& request) {
  while (request.responses < request.packets &&
         selective_->board().is_answered(request.first_psn + request.responses))
    ++request.responses;
  if (request.responses == request.packets && !request.answered) window_.note_answered(request);
}

// The data could not be put in its place ahead of its turn: it is asked for again.
void RcRequester::on_response_lost(wire::Psn psn) {
  if (selective_) selective_->board().give_up(psn);
}

// The scoreboard has noted an answer: requests complete, losses are found. `before`: the oldest PSN
// in flight before the answer.
void RcRequester::finish_answer(TimeNs now, wire::Psn before) {
  complete_delivered();
  const wire::Psn una = recovery_.una();
  const std::optional<TimeNs> rtt = selective_->take_round_trip();
  const uint32_t delivered = selective_->board().take_delivered();
  if (delivered > 0) congestion_.on_acknowledged(now, delivered, rtt);
  if (una != before) {
    recovery_.on_progress(now);
    if (context_.flow != nullptr) context_.flow->on_acknowledged(now, una);
    window_.skip_to(una);
  }
  selective_->find_losses(now);
  if (delivered > 0 || una != before) restart_selective_timer(now);
  fail_when_due();
}

void RcRequester::restart_selective_timer(TimeNs now) {
  selective_->restart_timer(now,
                            context_.attributes.timeout != 0 && !recovery_.waits_for_receiver());
}

// Requests complete in their order: READs and atomics with the last of their data, others when
// everything before their end has arrived.
void RcRequester::complete_delivered() {
  Scoreboard& board = selective_->board();
  while (!window_.empty()) {
    Request& oldest = window_.oldest();
    if (!oldest.sends_packets()) break;
    wire::Psn una = recovery_.una();
    if (is_read_or_atomic(oldest.work.opcode)) {
      while (una != oldest.end_psn() && board.is_answered(una)) ++una;
      oldest.responses = static_cast<uint32_t>(una.distance_from(oldest.first_psn));
    } else if (board.expected().after(una)) {
      una = board.expected().before(oldest.end_psn()) ? board.expected() : oldest.end_psn();
    }
    recovery_.acknowledge(una);
    board.slide(una);
    if (una.before(oldest.end_psn())) break;
    window_.complete_oldest(WcStatus::success);
  }
}

void RcRequester::give_up_in_flight() {
  selective_->board().give_up_all();
  selective_->note_cursor(false);
}

// `waited`: a receiver was waited for until now.
void RcRequester::on_selective_timeout(TimeNs now, bool waited) {
  if (waited && !recovery_.waits_for_receiver()) restart_selective_timer(now);
  if (!selective_->on_timeout(now)) return;
  context_.tally.note(TraceEvent::early_retransmission, recovery_.una().value());
  if (context_.flow != nullptr) context_.flow->on_loss(now);
  pace_.hold(now, packet_interval_ns());
}

// Makes packet number `index` of a request one of selective repeat. Returns how many bytes are to
// stand before its payload.
uint32_t RcRequester::shape_selectively(const Request& request, uint32_t index, wire::Bth& bth,
                                        wire::ExtendedHeaders& ext, uint32_t& psns) {
  const bool again = bth.psn.before(recovery_.sent_end());
  if (is_read_or_atomic(request.work.opcode)) {
    if (again) psns = selective_->board().run_from(request, bth.psn);
    if (request.work.opcode == WorkOpcode::read)
      ext.reth.length_bytes = std::min<uint64_t>(
          ext.reth.length_bytes, uint64_t{psns} * context_.attributes.path_mtu_bytes);
    return 0;
  }
  bth.ack_request |= again;
  bth.reserved7 |= wire::selective::kPlaced;
  SelectiveRepeat::describe_place(request, index, context_.attributes.path_mtu_bytes, ext);
  return static_cast<uint32_t>(wire::selective::place_bytes(bth.opcode));
}

// The frame has been added: returns where its payload goes.
std::byte* RcRequester::finish_selectively(Burst& burst, const Request& request,
                                           const wire::Bth& bth, const wire::ExtendedHeaders& ext,
                                           std::byte* payload) {
  if (!request.started) selective_->on_started(request);
  if (context_.limits.multipath && selective_->active())
    burst.spread_added(context_.attributes.path);
  if (!wire::selective::is_placed(bth)) return payload;
  wire::selective::store_place(payload, bth.opcode, ext);
  return payload + wire::selective::place_bytes(bth.opcode);
}

// The cursor to what is to be sent next: the oldest packet that is lost, or the first new one.
void RcRequester::steer() {
  if (selective_->board().has_lost()) {
    window_.seek(selective_->board().first_lost());
    selective_->note_cursor(false);
  } else if (selective_->leaves_end()) {
    recovery_.seek_end();
    selective_->note_cursor(true);
  }
}

}  // namespace rocemu::transport
