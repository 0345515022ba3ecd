#include "emulator/transport/responder/rc_responder.h"

#include <algorithm>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/responder/packet_checks.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

using wire::MessageKind;

void RcResponder::reset() {
  responses_.reset();
  responses_.tell_ahead(nullptr, nullptr);
  atomic_results_.release();
  message_ = MessageKind::none;
  receive_.taken = false;
  ahead_.reset();
}

void RcResponder::start() {
  expected_psn_ = context_.attributes.receive_psn;
  if (context_.limits.recovery == Recovery::selective_repeat)
    ahead_ = std::make_unique<OutOfOrder>();
  responses_.tell_ahead(ahead_ ? &ahead_->arrivals : nullptr, &expected_psn_);
  nak_.reset();
  established_ = false;
}

void RcResponder::on_request(const wire::Packet& packet) {
  if (!established_) {
    established_ = true;
    if (context_.state == QpState::ready_to_receive)
      context_.events.on_qp_event(context_.qpn, QpEvent::communication_established);
  }
  if (ahead_) [[unlikely]]
    responses_.note_peer(wire::selective::is_understood_by_sender(packet.bth),
                         context_.limits.multipath && wire::selective::takes_any_order(packet.bth));
  const wire::Psn psn = packet.bth.psn;
  const int32_t distance = psn.distance_from(expected_psn_);
  if (distance < 0) {
    context_.tally.note(TraceEvent::duplicate_request, psn.value());
    on_duplicate(packet);
  } else if (distance > 0) {
    if (!ahead_ || !take_ahead(packet)) refuse(Refusal::out_of_sequence_psn, psn);
  } else {
    const Refusal refusal = execute(packet);
    if (refusal != Refusal::none) {
      refuse(refusal, psn);
    } else if (ahead_) [[unlikely]] {
      execute_arrived();
    }
    if (nak_.renew(expected_psn_)) queue_acknowledge(wire::syndrome::kNakSequence, expected_psn_);
  }
}

void RcResponder::on_duplicate(const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  switch (packet.traits().kind) {
    case MessageKind::send:
    case MessageKind::write:
      queue_acknowledge(wire::syndrome::kAck, expected_psn_ - 1);
      break;
    case MessageKind::read:
      read_again(packet);
      break;
    case MessageKind::atomic_write:
    case MessageKind::flush:
      // It has been executed, and what an ATOMIC WRITE wrote may have been overwritten since.
      if (responses_.make_room_for_replay(psn))
        responses_.add_read_again(psn, {}, context_.resources.pd);
      break;
    case MessageKind::atomic:
      if (const auto original = atomic_results_.find(psn);
          original && responses_.make_room_for_replay(psn))
        responses_.add_atomic(psn, *original, true);
      break;
    default:
      break;
  }
}

// A late copy of a request whose memory has gone since is no error: the requester has its answer.
void RcResponder::read_again(const wire::Packet& packet) {
  const wire::Psn psn = packet.bth.psn;
  const wire::Reth& reth = packet.ext.reth;
  const uint32_t packets = packets_of(reth.length_bytes, context_.attributes.path_mtu_bytes);
  MemoryRange range;
  SharedReceiver target;
  const bool readable =
      find_target(packet, target) && (context_.attributes.access & kRemoteRead) != 0 &&
      reth.length_bytes <= kMaxMessageBytes && !(psn + packets).after(expected_psn_) &&
      (reth.length_bytes == 0 || check_remote(target, reth, reth.length_bytes, kRemoteRead, range));
  if (readable && responses_.make_room_for_replay(psn, packets))
    responses_.add_read_again(psn, reth, target.pd);
}

Refusal RcResponder::execute(const wire::Packet& packet) {
  SharedReceiver target;
  Refusal refusal = choose_target(packet, target);
  if (refusal == Refusal::none)
    refusal = check_message(packet.traits(), packet.payload.size(),
                            packet.packets * context_.attributes.path_mtu_bytes, message_);
  if (refusal != Refusal::none) return refusal;
  if (ahead_ && !is_in_its_place(packet)) [[unlikely]]
    return Refusal::wrong_place;
  switch (packet.traits().kind) {
    case MessageKind::send:
      if (context_.resources.tags != nullptr) [[unlikely]]
        return execute_tagged_send(packet, target);
      return execute_send(packet, target);
    case MessageKind::write:
      return execute_write(packet, target);
    case MessageKind::read:
      return execute_read(packet, target);
    case MessageKind::atomic_write:
      return execute_atomic_write(packet, target);
    case MessageKind::flush:
      return execute_flush(packet, target);
    default:
      return execute_atomic(packet, target);
  }
}

// Finds where a request takes place. False: it names no SRQ of the domain.
bool RcResponder::find_target(const wire::Packet& packet, SharedReceiver& target) const {
  const QpResources& resources = context_.resources;
  if (resources.xrc_domain != nullptr)
    return resources.xrc_domain->find(packet.ext.xrc_srq, target);
  target = {resources.pd, resources.receive_queue, resources.receive_cq};
  return true;
}

// The same for the packet that is to be executed: the packets of one message name one SRQ.
Refusal RcResponder::choose_target(const wire::Packet& packet, SharedReceiver& target) {
  if (context_.resources.xrc_domain != nullptr && message_ != MessageKind::none &&
      packet.ext.xrc_srq != srq_)
    return Refusal::other_srq;
  if (!find_target(packet, target)) return Refusal::unknown_srq;
  srq_ = packet.ext.xrc_srq;
  return Refusal::none;
}

// The protection domain that the receive's own memory is checked against.
PdHandle RcResponder::receive_pd(const SharedReceiver& target) const {
  return context_.resources.srq_pd.value_or(target.pd);
}

// The CQ of the receive under way; null when, over XRC, its SRQ is gone.
CompletionQueue* RcResponder::receive_cq() const {
  if (context_.resources.xrc_domain == nullptr) return context_.resources.receive_cq;
  SharedReceiver target;
  return context_.resources.xrc_domain->find(srq_, target) ? target.cq : nullptr;
}

bool RcResponder::check_remote(const SharedReceiver& target, const wire::Reth& reth,
                               uint32_t length_bytes, uint32_t access, MemoryRange& range) const {
  return context_.memory.check_remote(target.pd, context_.qpn, reth.rkey, reth.virtual_address,
                                      length_bytes, access, range);
}

void RcResponder::write(const MemoryRange& range, std::span<const std::byte> payload,
                        wire::Psn psn) {
  if (ahead_) [[unlikely]] {
    if (!ahead_->in_place) write_around(range, payload, psn, ScatterKind::remote_write);
    return;
  }
  const uint32_t tag = context_.deferred.note_scatter(context_.qp, ScatterKind::remote_write, psn);
  context_.memory.scatter(range, payload.data(), static_cast<uint32_t>(payload.size()), tag);
}

void RcResponder::tell_taken(const ReceiveWork& work) const {
  if (Observer* const observer = context_.tally.observer()) [[unlikely]]
    observer->on_receive_taken(context_.qpn, work);
}

// Makes sure that a good receive is at hand.
Refusal RcResponder::take_receive(const SharedReceiver& target) {
  if (!receive_.taken) {
    const bool claimed = ahead_ && take_claimed_receive();
    if (!claimed && !target.queue->pop(receive_.work)) return Refusal::receiver_not_ready;
    tell_taken(receive_.work);
    receive_.taken = true;
    receive_.received_bytes = 0;
    receive_.inline_data.length_bytes = 0;
  }
  return receive_.work.fault == WcStatus::success ? Refusal::none : Refusal::receive_malformed;
}

Refusal RcResponder::execute_send(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::OpcodeTraits& traits = packet.traits();
  Refusal refusal = take_receive(target);
  if (refusal == Refusal::none) refusal = fill_receive(packet, target);
  if (refusal != Refusal::none) return refusal;
  if (traits.ieth && !context_.memory.invalidate(target.pd, context_.qpn, packet.ext.invalidate))
    return Refusal::bad_invalidate;
  message_ = traits.ends ? MessageKind::none : MessageKind::send;
  if (traits.ends) complete_receive(WcStatus::success, &packet, receive_.received_bytes);
  accept(packet, packet.packets, traits.ends);
  return Refusal::none;
}

Refusal RcResponder::fill_receive(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::OpcodeTraits& traits = packet.traits();
  if (traits.starts && traits.ends && put_in_cqe(packet.payload, target)) return Refusal::none;
  const uint32_t offset = receive_.received_bytes;
  if (packet.payload.size() > receive_.work.length_bytes - offset)
    return Refusal::receive_too_short;
  receive_.received_bytes += static_cast<uint32_t>(packet.payload.size());
  if (ahead_ && ahead_->in_place) return Refusal::none;
  return scatter(context_, receive_pd(target), receive_.work, offset, packet.payload,
                 packet.bth.psn)
             ? Refusal::none
             : Refusal::receive_protection;
}

// A message of a few bytes that all go to one place travels inline in its CQE. False: it has to be
// scattered, which also finds what is wrong with the receive.
bool RcResponder::put_in_cqe(std::span<const std::byte> payload, const SharedReceiver& target) {
  const std::span<const Sge> sges = receive_.work.sges.view();
  if (payload.empty() || payload.size() > InlineCqeData::kMaxBytes || sges.empty() ||
      payload.size() > sges.front().length_bytes)
    return false;
  const auto bytes = static_cast<uint32_t>(payload.size());
  MemoryRange range;
  if (!context_.memory.check_local(receive_pd(target), sges.front().lkey, sges.front().address,
                                   bytes, kLocalWrite, range) ||
      range.on_demand || !target.cq->reaches(range))
    return false;
  receive_.inline_data.address = range.address;
  receive_.inline_data.length_bytes = bytes;
  std::copy(payload.begin(), payload.end(), receive_.inline_data.bytes.begin());
  receive_.received_bytes = bytes;
  return true;
}

Refusal RcResponder::execute_write(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::OpcodeTraits& traits = packet.traits();
  if ((context_.attributes.access & kRemoteWrite) == 0) return Refusal::access_not_enabled;
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  const wire::Reth rest = traits.starts ? packet.ext.reth : write_.rest;
  if (traits.starts && rest.length_bytes > kMaxMessageBytes) return Refusal::message_too_long;
  MemoryRange range;
  // The whole message is checked before its first byte is written (IBTA vol 1, 9.7.4.1.5).
  if (traits.starts && rest.length_bytes > 0 &&
      !check_remote(target, rest, rest.length_bytes, kRemoteWrite, range)) {
    // The receive that the immediate would have completed tells of it, if there is one.
    if (traits.imm) take_receive(target);
    return Refusal::bad_rkey;
  }
  if (traits.ends ? bytes != rest.length_bytes : bytes >= rest.length_bytes)
    return Refusal::dma_length;
  if (traits.imm) {
    if (const Refusal refusal = take_receive(target); refusal != Refusal::none) return refusal;
  }
  // Every packet but an only one is checked by itself: the region may have gone since the first.
  const bool is_checked = traits.starts && traits.ends;
  if (bytes > 0 && !is_checked && !check_remote(target, rest, bytes, kRemoteWrite, range))
    return Refusal::bad_rkey;
  if (bytes > 0) write(range, packet.payload, packet.bth.psn);
  write_.rest = {rest.virtual_address + bytes, rest.rkey, rest.length_bytes - bytes};
  write_.written_bytes = (traits.starts ? 0 : write_.written_bytes) + bytes;
  message_ = traits.ends ? MessageKind::none : MessageKind::write;
  if (traits.imm) complete_receive(WcStatus::success, &packet, write_.written_bytes);
  accept(packet, packet.packets, traits.ends);
  return Refusal::none;
}

Refusal RcResponder::execute_read(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::Reth& reth = packet.ext.reth;
  MemoryRange range;
  if ((context_.attributes.access & kRemoteRead) == 0) return Refusal::access_not_enabled;
  if (reth.length_bytes > kMaxMessageBytes) return Refusal::message_too_long;
  if (!responses_.make_room_for_request()) return Refusal::too_many_rd_atomics;
  if (reth.length_bytes > 0 && !check_remote(target, reth, reth.length_bytes, kRemoteRead, range))
    return Refusal::bad_rkey;
  accept(packet, packets_of(reth.length_bytes, context_.attributes.path_mtu_bytes), true);
  // A request may be somebody's who is not connected to this QP, and knows its PSN.
  const Landing& landing = context_.landing;
  const bool may_land = landing.requester == context_.attributes.remote_qpn && !ahead_;
  responses_.add_read(packet.bth.psn, reth, target.pd, may_land ? landing : Landing{});
  return Refusal::none;
}

// An ATOMIC WRITE has the rights of a WRITE, the alignment and the answer of an atomic (annex A19).
Refusal RcResponder::execute_atomic_write(const wire::Packet& packet,
                                          const SharedReceiver& target) {
  const wire::Reth& reth = packet.ext.reth;
  MemoryRange range;
  if ((context_.attributes.access & kRemoteWrite) == 0) return Refusal::access_not_enabled;
  if (reth.length_bytes != kAtomicBytes || packet.payload.size() != kAtomicBytes)
    return Refusal::atomic_length;
  if (reth.virtual_address % kAtomicBytes != 0) return Refusal::misaligned_atomic;
  if (!responses_.make_room_for_request()) return Refusal::too_many_rd_atomics;
  if (!check_remote(target, reth, kAtomicBytes, kRemoteWrite, range)) return Refusal::bad_rkey;
  // Of a region with addresses of its own the bytes may lie elsewhere.
  if (range.address % kAtomicBytes != 0) return Refusal::misaligned_atomic;
  write(range, packet.payload, packet.bth.psn);
  accept(packet, 1, true);
  responses_.add_read(packet.bth.psn, {}, target.pd);
  return Refusal::none;
}

// A FLUSH is answered when all that was written before it is in the program's memory (annex A19).
// There it is as visible, and lasts as long, as what the program writes itself.
Refusal RcResponder::execute_flush(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::Feth& feth = packet.ext.feth;
  const wire::Reth& reth = packet.ext.reth;
  const uint32_t access =
      ((feth.placement & verbs::placement::kGlobal) != 0 ? kFlushGlobal : 0) |
      ((feth.placement & verbs::placement::kPersistent) != 0 ? kFlushPersistent : 0);
  if ((context_.attributes.access & access) != access) return Refusal::access_not_enabled;
  if (reth.length_bytes > kMaxMessageBytes) return Refusal::message_too_long;
  if (!responses_.make_room_for_request()) return Refusal::too_many_rd_atomics;
  // Of the region as a whole the address and the length say nothing.
  const bool of_region = feth.selectivity == static_cast<uint8_t>(verbs::Selectivity::region);
  MemoryRange range;
  const bool granted = of_region || reth.length_bytes == 0
                           ? context_.memory.grants_remote(target.pd, context_.qpn, reth, access)
                           : check_remote(target, reth, reth.length_bytes, access, range);
  if (!granted) return Refusal::bad_rkey;
  context_.deferred.flush(context_.memory);
  if (context_.state == QpState::error) return Refusal::none;
  accept(packet, 1, true);
  responses_.add_read(packet.bth.psn, {}, target.pd);
  return Refusal::none;
}

Refusal RcResponder::execute_atomic(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::AtomicEth& atomic = packet.ext.atomic;
  if ((context_.attributes.access & kRemoteAtomic) == 0) return Refusal::access_not_enabled;
  if (atomic.virtual_address % kAtomicBytes != 0) return Refusal::misaligned_atomic;
  if (!responses_.make_room_for_request()) return Refusal::too_many_rd_atomics;
  // Data that was written before has to be in place, and may fail.
  context_.deferred.flush(context_.memory);
  if (context_.state == QpState::error) return Refusal::none;
  const wire::Reth reth{atomic.virtual_address, atomic.rkey, kAtomicBytes};
  MemoryRange range;
  if (!check_remote(target, reth, kAtomicBytes, kRemoteAtomic, range)) return Refusal::bad_rkey;
  if (range.address % kAtomicBytes != 0) return Refusal::misaligned_atomic;
  uint64_t original = 0;
  const bool done =
      packet.operation() == wire::Operation::compare_swap
          ? context_.memory.compare_swap(range, atomic.compare, atomic.swap_or_add, original)
          : context_.memory.fetch_add(range, atomic.swap_or_add, original);
  if (!done) return Refusal::remote_memory_lost;
  // As many results are kept as the requester may have unanswered.
  atomic_results_.keep(packet.bth.psn, original,
                       std::max<size_t>(context_.attributes.max_dest_rd_atomic, 1));
  accept(packet, 1, true);
  responses_.add_atomic(packet.bth.psn, original, false);
  return Refusal::none;
}

void RcResponder::note_executed_request(MessageKind kind, wire::Psn psn) {
  const bool reads = kind == MessageKind::read || kind == MessageKind::flush;
  const TraceEvent event = reads                         ? TraceEvent::read_executed
                           : kind == MessageKind::atomic ? TraceEvent::atomic_executed
                                                         : TraceEvent::write_executed;
  context_.tally.note(event, psn.value());
}

// The packet has been executed: the next one is expected.
void RcResponder::accept(const wire::Packet& packet, uint32_t psns, bool message_ends) {
  // A NAK for this packet that has not left yet is out of date.
  nak_.on_executed(nak_.outstanding() && responses_.take_back_nak(expected_psn_));
  expected_psn_ = expected_psn_ + psns;
  if (ahead_) [[unlikely]]
    note_executed(packet, expected_psn_ - psns, psns);
  const MessageKind kind = packet.traits().kind;
  if (message_ends) {
    responses_.count_message();
    if (kind != MessageKind::send) note_executed_request(kind, packet.bth.psn);
  }
  if (packet.bth.ack_request && (kind == MessageKind::send || kind == MessageKind::write))
    queue_acknowledge(wire::syndrome::kAck, expected_psn_ - 1);
}

void RcResponder::queue_acknowledge(uint8_t syndrome, wire::Psn psn) {
  if (ahead_ && syndrome == wire::syndrome::kAck && !ahead_->arrivals.empty()) [[unlikely]] {
    syndrome = wire::syndrome::kNakSequence;
    psn = expected_psn_;
  }
  responses_.add_acknowledge(syndrome, psn, nak_.outstanding());
}

Completion* RcResponder::complete_receive(WcStatus status, const wire::Packet* packet,
                                          uint32_t byte_length) {
  receive_.taken = false;
  CompletionQueue* const cq = receive_cq();
  if (cq == nullptr) return nullptr;
  Completion& completion = context_.deferred.complete(context_.qp, Side::responder, *cq);
  completion.wr_id = receive_.work.wr_id;
  completion.qpn = context_.qpn;
  completion.status = status;
  completion.opcode = WcOpcode::receive;
  completion.solicited = status != WcStatus::success;
  if (packet != nullptr) {
    const wire::OpcodeTraits& traits = packet->traits();
    if (traits.kind == MessageKind::write) completion.opcode = WcOpcode::receive_rdma_with_imm;
    completion.has_immediate = traits.imm;
    completion.has_invalidated = traits.ieth;
    completion.immediate = traits.ieth ? packet->ext.invalidate.value : packet->ext.immediate;
    completion.solicited = packet->bth.solicited;
    completion.byte_length = byte_length;
    completion.inline_data = receive_.inline_data;
  }
  if (status != WcStatus::success)
    context_.tally.note(TraceEvent::completion_with_error, static_cast<uint32_t>(status));
  return &completion;
}

// Does with the packet with `psn` what the table of refusals says.
void RcResponder::refuse(Refusal refusal, wire::Psn psn) {
  const RefusalRule& rule = rule_of(refusal);
  note_refusal(context_, rule, psn);
  if (rule.rc.kind == Reaction::Kind::fail) {
    fail(rule, psn);
  } else if (refusal == Refusal::receiver_not_ready) {
    nak_.on_not_ready();
    queue_acknowledge(rule.syndrome | (context_.attributes.min_rnr_timer & 0x1f), expected_psn_);
  } else if (nak_.on_ahead(psn)) {
    context_.tally.note(TraceEvent::sequence_nak_sent, expected_psn_.value());
    queue_acknowledge(rule.syndrome, expected_psn_);
  }
}

// Ends the connection at the packet with `psn`.
void RcResponder::fail(const RefusalRule& rule, wire::Psn psn) {
  responses_.drop_from(psn);
  const bool completed = receive_.taken && rule.receive_status != WcStatus::flush_error;
  if (completed) complete_receive(rule.receive_status, nullptr, 0);
  queue_acknowledge(rule.syndrome, psn);
  context_.qp.enter_error();
  context_.events.on_qp_error(context_.qpn);
  if (!completed && rule.event) context_.events.on_qp_event(context_.qpn, *rule.event);
}

void RcResponder::flush() {
  if (receive_.taken) complete_receive(WcStatus::flush_error, nullptr, 0);
  if (ahead_) flush_ahead();
  message_ = MessageKind::none;
  // Only answers up to a final NAK still leave.
  if (!responses_.final_nak_waits()) responses_.clear();
}

void RcResponder::flush_posted() {
  if (context_.resources.receives_are_shared) return;
  for (uint32_t i = 0; i < Qp::kFlushAtOnce; ++i) {
    if (!context_.resources.receive_queue->pop(receive_.work)) return;
    tell_taken(receive_.work);
    complete_receive(WcStatus::flush_error, nullptr, 0);
  }
  context_.deferred.flush_later(context_.qp);
}

Turn RcResponder::answer(Burst& burst) {
  for (;;) {
    std::optional<wire::Psn> unreadable;
    const Turn turn = responses_.transmit(burst, unreadable);
    if (!unreadable) return turn;
    on_fetch_failed(*unreadable);  // the NAK leaves now
  }
}

void RcResponder::on_fetch_failed(wire::Psn psn) {
  if (context_.state != QpState::error) refuse(Refusal::remote_memory_lost, psn);
}

void RcResponder::on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) {
  if (kind == ScatterKind::ahead) {
    ahead_->arrivals.remove(psn);  // it comes again, and fails in its turn
    return;
  }
  refuse(kind == ScatterKind::remote_write ? Refusal::remote_memory_lost
         : announced                       ? Refusal::completed_receive_memory_lost
                                           : Refusal::receive_memory_lost,
         psn);
}

}  // namespace rocemu::transport
