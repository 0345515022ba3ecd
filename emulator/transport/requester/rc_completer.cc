// The requester's other half: what answers do to the requests in flight (IBTA vol 1, 9.7.6
// and 9.9.2).
#include <algorithm>
#include <array>
#include <cstring>

#include "base/time.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/requester/rc_requester.h"

namespace rocemu::transport {

void RcRequester::on_response(TimeNs now, const wire::Packet& packet) {
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
  if (!in_flight(psn)) {
    ++context_.counters.stale_acks;
    return;
  }
  if (wire::syndrome::is_ack(syndrome)) {
    if (!acknowledge_before(now, psn + 1)) implied_nak();
  } else if (wire::syndrome::is_rnr(syndrome)) {
    on_rnr_nak(now, psn, syndrome & 0x1f);
  } else if (syndrome == wire::syndrome::kNakSequence) {
    on_sequence_nak(now, psn);
  } else if (wire::syndrome::is_nak(syndrome)) {
    on_fatal_nak(now, psn, syndrome);
  }
}

void RcRequester::on_sequence_nak(TimeNs now, wire::Psn psn) {
  ++context_.counters.sequence_naks_received;
  if (!acknowledge_before(now, psn)) {
    implied_nak();
    return;
  }
  // Linux sends one for the packet behind an RNR NAK; the wait goes on.
  if (rnr_until_ == kNever) {
    window_.on_loss(context_.limits.window_packets);
    retry();
  }
}

void RcRequester::on_rnr_nak(TimeNs now, wire::Psn psn, uint8_t timer_code) {
  ++context_.counters.rnr_naks_received;
  if (!acknowledge_before(now, psn)) {
    implied_nak();
    return;
  }
  if (rnr_until_ != kNever) return;
  if (context_.attributes.rnr_retry != 7) {
    if (rnr_retries_left_ == 0) {
      fail_oldest(WcStatus::rnr_retry_exceeded_error);
      return;
    }
    --rnr_retries_left_;
  }
  // An answer, though no progress: the way is there, and how often to be put off is rnr_retry's.
  retries_left_ = context_.attributes.retry_count;
  rnr_until_ = now + rnr_timer_ns(timer_code);
  ack_deadline_ = probe_deadline_ = kNever;
  stop_probing();
  seek(una_);
}

void RcRequester::on_fatal_nak(TimeNs now, wire::Psn psn, uint8_t syndrome) {
  if (!acknowledge_before(now, psn)) {
    implied_nak();
    return;
  }
  fail_oldest(status_of_nak(syndrome));
}

// Every packet before `end` has arrived. False when that cannot be taken at its word, because a
// READ or atomic among them has not been answered.
bool RcRequester::acknowledge_before(TimeNs now, wire::Psn end) {
  const wire::Psn before = una_;
  bool plausible = true;
  while (!requests_.empty()) {
    Request& oldest = requests_.front();
    if (oldest.work.fault != WcStatus::success || is_local(oldest.work.opcode)) break;
    if (is_read_or_atomic(oldest.work.opcode)) {
      plausible = !end.after(oldest.first_psn + oldest.responses);
      break;
    }
    if (end.before(oldest.end_psn())) {
      if (end.after(una_)) una_ = end;
      break;
    }
    una_ = oldest.end_psn();
    complete_oldest(WcStatus::success);
  }
  if (una_ != before) progress(now, before);
  return plausible;
}

// A response to a READ or atomic: true when it is the one that is expected next, after all before
// it has been acknowledged. The oldest request is then the one that is answered.
bool RcRequester::accept_response_psn(TimeNs now, const wire::Packet& packet, bool atomic) {
  const wire::Psn psn = packet.bth.psn;
  if (!in_flight(psn)) {
    ++context_.counters.stale_acks;
    return false;
  }
  if (!acknowledge_before(now, psn)) {
    implied_nak();
    return false;
  }
  if (requests_.empty()) return false;
  const Request& oldest = requests_.front();
  const bool expected = oldest.work.fault == WcStatus::success && oldest.started &&
                        psn == oldest.first_psn + oldest.responses &&
                        is_read_or_atomic(oldest.work.opcode) &&
                        atomic == is_atomic(oldest.work.opcode);
  if (!expected) ++context_.counters.stale_acks;
  return expected;
}

void RcRequester::on_read_response(TimeNs now, const wire::Packet& packet) {
  if (!accept_response_psn(now, packet, false)) return;
  Request& request = requests_.front();
  const uint32_t offset = request.responses * context_.attributes.path_mtu_bytes;
  const uint32_t length = brings_data(request.work.opcode) ? request.work.length_bytes : 0;
  const uint32_t expected = std::min(context_.attributes.path_mtu_bytes, length - offset);
  // The last packet must say so. A replay may begin with MIDDLE (Linux does so), and a request for
  // the rest is answered from FIRST again: any of them may stand before the end.
  const bool final_packet = request.responses + 1 == request.packets;
  const bool says_final = packet.operation() == wire::Operation::read_response_last ||
                          packet.operation() == wire::Operation::read_response_only;
  if (packet.payload.size() != expected || final_packet != says_final) {
    fail_oldest(WcStatus::bad_response_error);
    return;
  }
  if (!scatter_response(request, packet.payload, offset, packet.bth.psn)) {
    fail_oldest(WcStatus::local_protection_error);
    return;
  }
  response_done(now, request);
}

void RcRequester::on_atomic_acknowledge(TimeNs now, const wire::Packet& packet) {
  if (!accept_response_psn(now, packet, true)) return;
  Request& request = requests_.front();
  // The value goes to memory in the host's order (IBTA 9.4.5); it must outlive the collected
  // scatter, so it is settled before this returns.
  std::array<std::byte, sizeof(uint64_t)> value;
  std::memcpy(value.data(), &packet.ext.atomic_original, value.size());
  if (scatter_response(request, value, 0, packet.bth.psn)) {
    response_done(now, request);
  } else {
    fail_oldest(WcStatus::local_protection_error);
  }
  context_.deferred.flush(context_.memory);
}

bool RcRequester::scatter_response(Request& request, std::span<const std::byte> payload,
                                   uint32_t offset_bytes, wire::Psn psn) {
  for (const Sge& sge : request.work.sges.view()) {
    if (payload.empty()) break;
    if (offset_bytes >= sge.length_bytes) {
      offset_bytes -= sge.length_bytes;
      continue;
    }
    const auto part =
        static_cast<uint32_t>(std::min<size_t>(payload.size(), sge.length_bytes - offset_bytes));
    MemoryRange range;
    if (!context_.memory.check_local(context_.resources.pd, sge.lkey, sge.address + offset_bytes,
                                     part, kLocalWrite, range))
      return false;
    const uint32_t tag =
        context_.deferred.note_scatter(context_.qp, ScatterKind::read_response, psn);
    context_.memory.scatter(range, payload.data(), part, tag);
    payload = payload.subspan(part);
    offset_bytes = 0;
  }
  return payload.empty();
}

// One response packet has been taken.
void RcRequester::response_done(TimeNs now, Request& request) {
  ++request.responses;
  const wire::Psn before = una_;
  una_ = request.first_psn + request.responses;
  if (request.responses == request.packets) complete_oldest(WcStatus::success);
  progress(now, before);
}

// una_ has moved on from `before`.
void RcRequester::progress(TimeNs now, wire::Psn before) {
  retries_left_ = context_.attributes.retry_count;
  rnr_retries_left_ = context_.attributes.rnr_retry;
  implied_nak_taken_ = false;
  const TimeNs timeout = ack_timeout_ns(context_.attributes.timeout);
  // During an RNR wait nothing is sent that could be answered.
  const bool waiting = una_ == sent_end_ || rnr_until_ != kNever;
  ack_deadline_ = waiting || timeout == kNever ? kNever : now + timeout;
  note_progress(now, before);
  // The answer may be to packets that the cursor was about to send again.
  if (send_index_ == 0 && !requests_.empty()) {
    const int32_t done = una_.distance_from(requests_.front().first_psn);
    if (done > static_cast<int32_t>(send_packet_)) send_packet_ = static_cast<uint32_t>(done);
    if (send_packet_ >= requests_.front().packets && requests_.front().packets > 0) {
      send_packet_ = 0;
      send_index_ = 1;
    }
  }
}

void RcRequester::implied_nak() {
  if (implied_nak_taken_ || rnr_until_ != kNever) return;
  ++context_.counters.implied_naks;
  window_.on_loss(context_.limits.window_packets);
  retry();
  implied_nak_taken_ = true;
}

void RcRequester::on_timeout(TimeNs now) {
  if (rnr_until_ <= now) rnr_until_ = kNever;
  if (ack_deadline_ <= now) {
    ++context_.counters.ack_timeouts;
    implied_nak_taken_ = false;
    retry();
  } else if (probe_deadline_ <= now) {
    probe(now);
  }
}

TimeNs RcRequester::deadline() const {
  return std::min({ack_deadline_, probe_deadline_, rnr_until_});
}

// Goes back to the oldest unacknowledged packet, or gives up.
void RcRequester::retry() {
  if (retries_left_ == 0) {
    fail_oldest(WcStatus::retry_exceeded_error);
    return;
  }
  --retries_left_;
  ack_deadline_ = probe_deadline_ = kNever;  // sending starts them anew
  stop_probing();
  seek(una_);
}

void RcRequester::seek(wire::Psn psn) {
  ack_asked_ = psn;
  for (uint32_t i = 0; i < requests_.size(); ++i) {
    const Request& request = requests_[i];
    if (psn.before(request.end_psn()) || request.work.fault != WcStatus::success ||
        is_local(request.work.opcode)) {
      send_index_ = i;
      send_packet_ = psn.after(request.first_psn)
                         ? static_cast<uint32_t>(psn.distance_from(request.first_psn))
                         : 0;
      return;
    }
  }
  send_index_ = static_cast<uint32_t>(requests_.size());
  send_packet_ = 0;
}

void RcRequester::complete_oldest(WcStatus status) {
  const Request& oldest = requests_.front();
  const SendWork& work = oldest.work;
  if (oldest.started && is_read_or_atomic(work.opcode)) --rd_atomics_;
  Completion& completion = context_.deferred.complete(context_.qp, Side::requester,
                                                      *context_.resources.send_cq, work.signaled);
  completion.wr_id = work.wr_id;
  completion.qpn = context_.qpn;
  completion.status = status;
  completion.opcode = completion_opcode(work.opcode);
  completion.solicited = status != WcStatus::success;
  completion.byte_length = is_atomic(work.opcode) ? 8 : work.length_bytes;
  if (status != WcStatus::success) ++context_.counters.completions_with_error;
  context_.resources.send_queue->release(1);
  requests_.pop_front();
  if (send_index_ > 0) {
    --send_index_;
  } else {
    send_packet_ = 0;
  }
}

void RcRequester::fail_oldest(WcStatus status) {
  if (requests_.empty()) return;
  complete_oldest(status);
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
