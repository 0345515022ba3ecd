#include "emulator/transport/responder/rc_responder.h"

#include <algorithm>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/qp.h"

namespace rocemu::transport {

namespace {

using wire::Operation;

bool is_invalidate(Operation op) {
  return op == Operation::send_last_invalidate || op == Operation::send_only_invalidate;
}
bool is_send_op(Operation op) { return op <= Operation::send_only_imm || is_invalidate(op); }
bool is_write_op(Operation op) {
  return op >= Operation::write_first && op <= Operation::write_only_imm;
}
bool is_atomic_op(Operation op) {
  return op == Operation::compare_swap || op == Operation::fetch_add;
}
bool is_first_or_middle(Operation op) {
  return op == Operation::send_first || op == Operation::send_middle ||
         op == Operation::write_first || op == Operation::write_middle;
}
bool starts_message(Operation op) {
  return op == Operation::send_first || op == Operation::send_only ||
         op == Operation::send_only_imm || op == Operation::send_only_invalidate ||
         op == Operation::write_first || op == Operation::write_only ||
         op == Operation::write_only_imm;
}
bool is_only(Operation op) {
  return op == Operation::send_only || op == Operation::send_only_imm ||
         op == Operation::send_only_invalidate || op == Operation::write_only ||
         op == Operation::write_only_imm;
}
bool has_immediate(Operation op) {
  return op == Operation::send_last_imm || op == Operation::send_only_imm ||
         op == Operation::write_last_imm || op == Operation::write_only_imm;
}

}  // namespace

void RcResponder::reset() {
  responses_.release();
  atomic_results_.release();
  rd_atomics_queued_ = 0;
  message_ = Message::none;
  receive_taken_ = false;
  msn_ = 0;
}

void RcResponder::start() {
  expected_psn_ = context_.attributes.receive_psn;
  nak_sent_ = false;
  established_ = false;
}

void RcResponder::on_request(const wire::Packet& packet) {
  if (!established_) {
    established_ = true;
    if (context_.state == QpState::ready_to_receive)
      context_.events.on_qp_event(context_.qpn, QpEvent::communication_established);
  }
  const int32_t ahead = packet.bth.psn.distance_from(expected_psn_);
  if (ahead == 0) {
    nak_withdrawn_ = false;
    execute(packet);
    renew_nak();
  } else if (ahead < 0) {
    ++context_.counters.duplicate_requests;
    on_duplicate(packet);
  } else {
    ++context_.counters.out_of_sequence;
    if (nak_sent_ && !shows_restart(packet.bth.psn)) return;
    nak_sent_ = true;
    ahead_ = packet.bth.psn;
    ++context_.counters.sequence_naks_sent;
    queue_acknowledge(wire::syndrome::kNakSequence, expected_psn_);
  }
}

// A NAK that was taken back asked for more than the packet that has come: what drew it, and what
// came since, was thrown away.
void RcResponder::renew_nak() {
  if (!nak_withdrawn_ || !ahead_ || ahead_->before(expected_psn_)) return;
  if (context_.state == QpState::error) return;
  nak_sent_ = true;
  queue_acknowledge(wire::syndrome::kNakSequence, expected_psn_);
}

// After a NAK, a packet ahead of the expected one that has been here before: the requester went
// back and the expected packet was lost once more.
bool RcResponder::shows_restart(wire::Psn psn) {
  if (!ahead_)
    ahead_ = psn;  // the first one behind an RNR NAK
  else if (!psn.after(*ahead_))
    return true;
  return false;
}

void RcResponder::on_duplicate(const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const Operation op = packet.operation();
  if (is_send_op(op) || is_write_op(op)) {
    queue_acknowledge(wire::syndrome::kAck, expected_psn_ - 1);
  } else if (op == Operation::read_request) {
    const wire::Reth& reth = packet.ext.reth;
    const uint32_t packets = packets_of(reth.length_bytes, context_.attributes.path_mtu_bytes);
    MemoryRange range;
    SharedReceiver target;
    // A late copy of a request whose memory has gone since is no error: the requester has its
    // answer.
    const bool readable =
        find_target(packet, target) && (context_.attributes.access & kRemoteRead) != 0 &&
        reth.length_bytes <= kMaxMessageBytes && !(psn + packets).after(expected_psn_) &&
        (reth.length_bytes == 0 ||
         context_.memory.check_remote(target.pd, context_.qpn, reth.rkey, reth.virtual_address,
                                      reth.length_bytes, kRemoteRead, range));
    if (readable && make_room_for_replay(psn)) queue_read(psn, reth, target.pd, true);
  } else if (op == Operation::atomic_write) {
    // It has been executed, and what it wrote may have been overwritten since.
    if (make_room_for_replay(psn)) queue_read(psn, {}, context_.resources.pd, true);
  } else if (is_atomic_op(op)) {
    for (size_t i = 0; i < atomic_results_.size(); ++i) {
      const AtomicResult result = atomic_results_[i];
      if (result.psn != psn) continue;
      if (make_room_for_replay(psn)) queue_atomic(psn, result.original, true);
      return;
    }
  }
}

// Whether the payload length fits the opcode (IBTA 9.7.4.1.6), and the opcode what is under way
// (9.7.4.1.4).
bool RcResponder::well_formed(const wire::Packet& packet) const {
  const Operation op = packet.operation();
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const size_t bytes = packet.payload.size();
  if (is_send_op(op) || is_write_op(op)) {
    if (is_first_or_middle(op) ? bytes != mtu : bytes > mtu) return false;
    if (!is_first_or_middle(op) && !is_only(op) && bytes == 0) return false;
  }
  if (message_ == Message::none)
    return starts_message(op) || op == Operation::read_request || is_atomic_op(op) ||
           op == Operation::atomic_write;
  if (starts_message(op)) return false;
  return message_ == Message::send ? is_send_op(op) : is_write_op(op);
}

void RcResponder::execute(const wire::Packet& packet) {
  const Operation op = packet.operation();
  if (!choose_target(packet) || !well_formed(packet)) {
    fail(responder_fault::kInvalidRequest, packet.bth.psn);
  } else if (is_send_op(op)) {
    execute_send(packet);
  } else if (is_write_op(op)) {
    execute_write(packet);
  } else if (op == Operation::read_request) {
    execute_read(packet);
  } else if (op == Operation::atomic_write) {
    execute_atomic_write(packet);
  } else {
    execute_atomic(packet);
  }
}

// Where what `packet` asks for takes place. False: it names no SRQ of the domain.
bool RcResponder::find_target(const wire::Packet& packet, SharedReceiver& target) const {
  const QpResources& resources = context_.resources;
  if (resources.xrc_domain != nullptr)
    return resources.xrc_domain->find(packet.ext.xrc_srq, target);
  target = {resources.pd, resources.receive_queue, resources.receive_cq};
  return true;
}

// The same for the packet that is to be executed: the packets of one message name one SRQ.
bool RcResponder::choose_target(const wire::Packet& packet) {
  if (context_.resources.xrc_domain == nullptr) return true;
  if (message_ != Message::none && packet.ext.xrc_srq != srq_) return false;
  SharedReceiver target;
  if (!find_target(packet, target)) return false;
  srq_ = packet.ext.xrc_srq;
  context_.resources.pd = target.pd;
  context_.resources.receive_queue = target.queue;
  context_.resources.receive_cq = target.cq;
  return true;
}

// Where the receive under way is completed; null when, over XRC, its SRQ is gone.
CompletionQueue* RcResponder::receive_cq() const {
  if (context_.resources.xrc_domain == nullptr) return context_.resources.receive_cq;
  SharedReceiver target;
  return context_.resources.xrc_domain->find(srq_, target) ? target.cq : nullptr;
}

// Makes sure that a receive is at hand. False: there is none, and the requester has been told.
bool RcResponder::take_receive() {
  if (receive_taken_) return true;
  if (!context_.resources.receive_queue->pop(receive_)) {
    nak_sent_ = true;  // what follows it is dropped without another NAK
    ahead_.reset();
    ++context_.counters.rnr_naks_sent;
    queue_acknowledge(
        static_cast<uint8_t>(wire::syndrome::kRnr | (context_.attributes.min_rnr_timer & 0x1f)),
        expected_psn_);
    return false;
  }
  receive_taken_ = true;
  received_bytes_ = 0;
  inline_data_.length_bytes = 0;
  return true;
}

void RcResponder::execute_send(const wire::Packet& packet) {
  if (!take_receive()) return;
  if (receive_.fault != WcStatus::success) {
    fail(responder_fault::kReceiveMalformed, packet.bth.psn);
    return;
  }
  const bool ends = !is_first_or_middle(packet.operation());
  const bool in_cqe = starts_message(packet.operation()) && ends && put_in_cqe(packet.payload);
  if (!in_cqe) {
    if (const auto fault = scatter_receive(packet.payload, packet.bth.psn)) {
      fail(*fault, packet.bth.psn);
      return;
    }
  }
  if (is_invalidate(packet.operation()) &&
      !context_.memory.invalidate(context_.resources.pd, context_.qpn, packet.ext.invalidate)) {
    fail(responder_fault::kInvalidate, packet.bth.psn);
    return;
  }
  message_ = ends ? Message::none : Message::send;
  if (ends) complete_receive(WcStatus::success, &packet, received_bytes_);
  accept(packet, 1, ends);
}

// A message of a few bytes that all go to one place travels in its completion. False: it has to be
// scattered, which also finds what is wrong with the receive.
bool RcResponder::put_in_cqe(std::span<const std::byte> payload) {
  const std::span<const Sge> sges = receive_.sges.view();
  if (payload.empty() || payload.size() > InlineCqeData::kMaxBytes || sges.empty() ||
      payload.size() > sges.front().length_bytes)
    return false;
  const CompletionQueue* const cq = receive_cq();
  const auto bytes = static_cast<uint32_t>(payload.size());
  MemoryRange range;
  if (cq == nullptr ||
      !context_.memory.check_local(context_.resources.receive_pd(), sges.front().lkey,
                                   sges.front().address, bytes, kLocalWrite, range) ||
      range.on_demand || !cq->reaches(range))
    return false;
  inline_data_.address = range.address;
  inline_data_.length_bytes = bytes;
  std::copy(payload.begin(), payload.end(), inline_data_.bytes.begin());
  received_bytes_ = bytes;
  return true;
}

std::optional<ResponderFault> RcResponder::scatter_receive(std::span<const std::byte> payload,
                                                           wire::Psn psn) {
  if (payload.size() > receive_.length_bytes - received_bytes_)
    return responder_fault::kReceiveTooShort;
  const uint32_t offset = received_bytes_;
  received_bytes_ += static_cast<uint32_t>(payload.size());
  if (!scatter(context_, receive_, offset, payload, psn))
    return responder_fault::kReceiveProtection;
  return std::nullopt;
}

void RcResponder::execute_write(const wire::Packet& packet) {
  const Operation op = packet.operation();
  const wire::Psn psn = packet.bth.psn;
  if ((context_.attributes.access & kRemoteWrite) == 0) {
    fail(responder_fault::kInvalidRequest, psn);
    return;
  }
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  MemoryRange range;
  wire::Reth target = write_;
  if (starts_message(op)) {
    target = packet.ext.reth;
    // The whole message is checked before its first byte is written (IBTA 9.7.4.1.5).
    if (target.length_bytes > 0 &&
        !context_.memory.check_remote(context_.resources.pd, context_.qpn, target.rkey,
                                      target.virtual_address, target.length_bytes, kRemoteWrite,
                                      range)) {
      fail(responder_fault::kRemoteAccess, psn);
      return;
    }
  }
  const bool ends = !is_first_or_middle(op);
  if (ends ? bytes != target.length_bytes : bytes >= target.length_bytes) {
    fail(responder_fault::kInvalidRequest, psn);
    return;
  }
  if (has_immediate(op)) {
    if (!take_receive()) return;
    if (receive_.fault != WcStatus::success) {
      fail(responder_fault::kReceiveMalformed, psn);
      return;
    }
  }
  if (bytes > 0) {
    // Checked for every packet but an only one: the region may have gone since the first.
    const bool whole_message = starts_message(op) && ends;
    if (!whole_message &&
        !context_.memory.check_remote(context_.resources.pd, context_.qpn, target.rkey,
                                      target.virtual_address, bytes, kRemoteWrite, range)) {
      fail(responder_fault::kRemoteAccess, psn);
      return;
    }
    const uint32_t tag =
        context_.deferred.note_scatter(context_.qp, ScatterKind::remote_write, psn);
    context_.memory.scatter(range, packet.payload.data(), bytes, tag);
  }
  write_ = target;
  write_.virtual_address += bytes;
  write_.length_bytes -= bytes;
  if (starts_message(op)) written_bytes_ = 0;
  written_bytes_ += bytes;
  message_ = ends ? Message::none : Message::write;
  if (has_immediate(op)) complete_receive(WcStatus::success, &packet, written_bytes_);
  accept(packet, 1, ends);
}

void RcResponder::execute_read(const wire::Packet& packet) {
  const wire::Reth& reth = packet.ext.reth;
  const uint32_t packets = packets_of(reth.length_bytes, context_.attributes.path_mtu_bytes);
  MemoryRange range;
  if ((context_.attributes.access & kRemoteRead) == 0 || reth.length_bytes > kMaxMessageBytes ||
      !make_room_for_request()) {
    fail(responder_fault::kInvalidRequest, packet.bth.psn);
    return;
  }
  if (reth.length_bytes > 0 &&
      !context_.memory.check_remote(context_.resources.pd, context_.qpn, reth.rkey,
                                    reth.virtual_address, reth.length_bytes, kRemoteRead, range)) {
    fail(responder_fault::kRemoteAccess, packet.bth.psn);
    return;
  }
  accept(packet, packets, true);
  queue_read(packet.bth.psn, reth, context_.resources.pd, false);
}

// The rights of a WRITE, the alignment and the answer of an atomic (annex A19).
void RcResponder::execute_atomic_write(const wire::Packet& packet) {
  const wire::Reth& reth = packet.ext.reth;
  const wire::Psn psn = packet.bth.psn;
  if ((context_.attributes.access & kRemoteWrite) == 0 || reth.length_bytes != kAtomicBytes ||
      packet.payload.size() != kAtomicBytes || reth.virtual_address % kAtomicBytes != 0 ||
      !make_room_for_request()) {
    fail(responder_fault::kInvalidRequest, psn);
    return;
  }
  MemoryRange range;
  if (!context_.memory.check_remote(context_.resources.pd, context_.qpn, reth.rkey,
                                    reth.virtual_address, kAtomicBytes, kRemoteWrite, range)) {
    fail(responder_fault::kRemoteAccess, psn);
    return;
  }
  const uint32_t tag = context_.deferred.note_scatter(context_.qp, ScatterKind::remote_write, psn);
  context_.memory.scatter(range, packet.payload.data(), kAtomicBytes, tag);
  accept(packet, 1, true);
  queue_read(psn, {}, context_.resources.pd, false);
}

void RcResponder::execute_atomic(const wire::Packet& packet) {
  const wire::AtomicEth& atomic = packet.ext.atomic;
  const wire::Psn psn = packet.bth.psn;
  if ((context_.attributes.access & kRemoteAtomic) == 0 ||
      atomic.virtual_address % sizeof(uint64_t) != 0 || !make_room_for_request()) {
    fail(responder_fault::kInvalidRequest, psn);
    return;
  }
  // What was written before has to be in place, and may fail.
  context_.deferred.flush(context_.memory);
  if (context_.state == QpState::error) return;
  MemoryRange range;
  uint64_t original = 0;
  const bool done =
      context_.memory.check_remote(context_.resources.pd, context_.qpn, atomic.rkey,
                                   atomic.virtual_address, sizeof(uint64_t), kRemoteAtomic,
                                   range) &&
      (packet.operation() == Operation::compare_swap
           ? context_.memory.compare_swap(range, atomic.compare, atomic.swap_or_add, original)
           : context_.memory.fetch_add(range, atomic.swap_or_add, original));
  if (!done) {
    fail(responder_fault::kRemoteAccess, psn);
    return;
  }
  // As many results are kept as the requester may have unanswered.
  if (atomic_results_.size() >= std::max<uint32_t>(context_.attributes.max_dest_rd_atomic, 1))
    atomic_results_.pop_front();
  atomic_results_.push_back() = {psn, original};
  accept(packet, 1, true);
  queue_atomic(psn, original, false);
}

bool RcResponder::room_for_rd_atomic() const {
  return rd_atomics_queued_ < context_.attributes.max_dest_rd_atomic;
}

// The packet has been executed: the next one is expected.
void RcResponder::accept(const wire::Packet& packet, uint32_t psns, bool message_ends) {
  // A NAK for this packet that has not left yet is out of date.
  if (nak_sent_ && !responses_.empty() && responses_.back().psn == expected_psn_ &&
      responses_.back().syndrome != wire::syndrome::kAck) {
    responses_.pop_back();
    nak_withdrawn_ = true;
  }
  nak_sent_ = false;
  expected_psn_ = expected_psn_ + psns;
  if (message_ends) msn_ = (msn_ + 1) & wire::Psn::kMask;
  if (packet.bth.ack_request && (is_send_op(packet.operation()) || is_write_op(packet.operation())))
    queue_acknowledge(wire::syndrome::kAck, packet.bth.psn);
}

void RcResponder::complete_receive(WcStatus status, const wire::Packet* packet,
                                   uint32_t byte_length) {
  receive_taken_ = false;
  CompletionQueue* const cq = receive_cq();
  if (cq == nullptr) return;
  Completion& completion = context_.deferred.complete(context_.qp, Side::responder, *cq);
  completion.wr_id = receive_.wr_id;
  completion.qpn = context_.qpn;
  completion.status = status;
  completion.opcode = WcOpcode::receive;
  completion.solicited = status != WcStatus::success;
  if (packet != nullptr) {
    if (is_write_op(packet->operation())) completion.opcode = WcOpcode::receive_rdma_with_imm;
    completion.has_immediate = has_immediate(packet->operation());
    completion.has_invalidated = is_invalidate(packet->operation());
    completion.immediate =
        completion.has_invalidated ? packet->ext.invalidate.value : packet->ext.immediate;
    completion.solicited = packet->bth.solicited;
    completion.byte_length = byte_length;
    completion.inline_data = inline_data_;
  }
  if (status != WcStatus::success) ++context_.counters.completions_with_error;
}

// Ends the connection at the packet with `psn`.
void RcResponder::fail(const ResponderFault& fault, wire::Psn psn) {
  ++context_.counters.responder_errors;
  drop_responses_from(psn);
  const bool completed = receive_taken_ && fault.receive_status != WcStatus::flush_error;
  if (completed) complete_receive(fault.receive_status, nullptr, 0);
  queue_acknowledge(fault.syndrome, psn);
  context_.qp.enter_error();
  context_.events.on_qp_error(context_.qpn);
  if (!completed && fault.event) context_.events.on_qp_event(context_.qpn, *fault.event);
}

void RcResponder::flush() {
  if (receive_taken_) complete_receive(WcStatus::flush_error, nullptr, 0);
  message_ = Message::none;
  // Only answers up to a final NAK still leave.
  const bool nak_waits = !responses_.empty() &&
                         wire::syndrome::is_nak(responses_.back().syndrome) &&
                         responses_.back().syndrome != wire::syndrome::kNakSequence;
  if (!nak_waits) {
    responses_.clear();
    rd_atomics_queued_ = 0;
  }
}

void RcResponder::flush_posted() {
  if (context_.resources.receives_are_shared) return;
  constexpr uint32_t kMax = 65536;  // see RcRequester::flush_posted
  for (uint32_t i = 0; i < kMax && context_.resources.receive_queue->pop(receive_); ++i)
    complete_receive(WcStatus::flush_error, nullptr, 0);
}

void RcResponder::on_fetch_failed(wire::Psn psn) {
  if (context_.state == QpState::error) return;
  fail(responder_fault::kRemoteAccess, psn);
}

void RcResponder::on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) {
  if (kind == ScatterKind::remote_write) {
    fail(responder_fault::kRemoteAccess, psn);
    return;
  }
  // The receive under way is another one when the failed one has been completed already.
  ResponderFault fault = responder_fault::kReceiveProtection;
  if (announced) fault = {fault.syndrome, std::nullopt, WcStatus::flush_error};
  fail(fault, psn);
}

}  // namespace rocemu::transport
