#include "emulator/transport/requester/rc_requester.h"

#include <algorithm>

#include "emulator/transport/qp/local_request.h"
#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"

namespace rocemu::transport {

using wire::Operation;

namespace {

// A program that posts them without end is not to keep the engine from its other work.
constexpr uint32_t kLocalRequestsInATurn = 64;

}  // namespace

void RcRequester::reset() {
  requests_.release();
  send_index_ = send_packet_ = 0;
  una_ = sent_end_;
  rd_atomics_ = 0;
  implied_nak_taken_ = false;
  ack_deadline_ = rnr_until_ = probe_deadline_ = timed_since_ = kNever;
  rtt_ = {};
  window_ = {};
  stop_probing();
}

void RcRequester::start() {
  next_psn_ = una_ = sent_end_ = ack_asked_ = context_.attributes.send_psn;
  retries_left_ = context_.attributes.retry_count;
  rnr_retries_left_ = context_.attributes.rnr_retry;
}

void RcRequester::on_attributes_changed() {
  // What is to wait for a turn that never comes fails as if it were posted now (find_fault).
  for (uint32_t i = 0; i < requests_.size() && context_.attributes.max_rd_atomic == 0; ++i) {
    Request& request = requests_[i];
    if (!request.started && is_read_or_atomic(request.work.opcode) &&
        request.work.fault == WcStatus::success)
      request.work.fault = WcStatus::local_qp_operation_error;
  }
  // Packets that were sent without a timeout get one by being sent again.
  const bool has_timeout = ack_timeout_ns(context_.attributes.timeout) != kNever;
  if (has_timeout && ack_deadline_ == kNever && rnr_until_ == kNever && una_ != sent_end_)
    seek(una_);
}

// What is wrong with a request before any packet is sent, in the order in which hardware looks.
WcStatus RcRequester::find_fault(const SendWork& work) const {
  if (work.fault != WcStatus::success) return work.fault;
  if (is_read_or_atomic(work.opcode) && context_.attributes.max_rd_atomic == 0)
    return WcStatus::local_qp_operation_error;
  if (work.opcode == WorkOpcode::atomic_write && context_.transport != wire::Transport::rc)
    return WcStatus::local_qp_operation_error;
  const uint32_t access = brings_data(work.opcode) ? kLocalWrite : kLocalRead;
  return may_use(context_, work, access) ? WcStatus::success : WcStatus::local_protection_error;
}

bool RcRequester::take_next() {
  if (context_.state != QpState::ready_to_send) return false;
  Request& request = requests_.push_back();
  if (!context_.resources.send_queue->pop(request.work)) {
    requests_.pop_back();
    return false;
  }
  request.work.fault = find_fault(request.work);
  request.first_psn = next_psn_;
  request.responses = 0;
  request.started = false;
  // A faulty or local request is never sent and owns no PSN.
  request.packets = request.work.fault != WcStatus::success || is_local(request.work.opcode) ? 0
                    : is_atomic(request.work.opcode)
                        ? 1
                        : packets_of(request.work.length_bytes, context_.attributes.path_mtu_bytes);
  next_psn_ = request.end_psn();
  return true;
}

bool RcRequester::may_start(const Request& request) const {
  if (request.started) return true;
  if (request.work.fence && rd_atomics_ > 0) return false;
  return !is_read_or_atomic(request.work.opcode) || rd_atomics_ < context_.attributes.max_rd_atomic;
}

Turn RcRequester::transmit(TimeNs now, Burst& burst) {
  if (context_.state != QpState::ready_to_send && context_.state != QpState::send_queue_drain)
    return Turn::idle;
  if (rnr_until_ != kNever) return Turn::idle;
  for (uint32_t i = 0; i < kLocalRequestsInATurn; ++i) {
    const Turn turn = transmit_next(now, burst);
    if (turn != Turn::later) return turn;
  }
  return Turn::later;
}

// `later`: a local request was executed, and the next one may be looked at.
Turn RcRequester::transmit_next(TimeNs now, Burst& burst) {
  // The window also bounds how many requests are taken off the queue.
  if (send_index_ == requests_.size() && !take_next()) {
    note_drained();
    return Turn::idle;
  }
  Request& request = requests_[send_index_];
  if (request.work.fault != WcStatus::success) {
    if (send_index_ == 0) fail_oldest(request.work.fault);
    return Turn::idle;
  }
  if (is_local(request.work.opcode)) return take_local_turn(request.work);
  const wire::Psn psn = request.first_psn + send_packet_;
  if (static_cast<uint32_t>(psn.distance_from(una_)) >= window()) return Turn::idle;
  if (!may_start(request)) return Turn::idle;
  return send_packet(now, burst, request);
}

// Local requests wait until all before them are over, which is more than binding asks for and what
// a local invalidate needs (IBTA vol 1, 10.8.3.3).
Turn RcRequester::take_local_turn(const SendWork& work) {
  if (send_index_ > 0) return Turn::idle;
  const WcStatus status = execute_local(context_, work);
  if (status != WcStatus::success) {
    fail_oldest(status);
    return Turn::idle;
  }
  complete_oldest(WcStatus::success);
  return Turn::later;
}

wire::Bth RcRequester::make_bth(Operation operation, wire::Psn psn, bool ack_request,
                                bool solicited) const {
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, operation);
  bth.pkey = context_.attributes.pkey;
  bth.destination_qp = context_.attributes.remote_qpn;
  bth.ack_request = ack_request;
  bth.solicited = solicited;
  bth.psn = psn;
  return bth;
}

Turn RcRequester::send_packet(TimeNs now, Burst& burst, Request& request) {
  const SendWork& work = request.work;
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t offset = send_packet_ * mtu;
  const wire::Psn psn = request.first_psn + send_packet_;
  wire::ExtendedHeaders ext;
  Operation operation;
  bool ack_request = false;
  bool solicited = false;
  uint32_t payload_bytes = 0;
  uint32_t packets_covered = 1;
  ext.xrc_srq = work.remote_srq;

  if (work.opcode == WorkOpcode::read) {
    operation = Operation::read_request;
    ext.reth = {work.remote_address + offset, work.rkey, work.length_bytes - offset};
    packets_covered = request.packets - send_packet_;
  } else if (is_atomic(work.opcode)) {
    const bool swap = work.opcode == WorkOpcode::compare_swap;
    operation = swap ? Operation::compare_swap : Operation::fetch_add;
    ext.atomic = {work.remote_address, work.rkey, swap ? work.swap : work.compare_add,
                  swap ? work.compare_add : 0};
  } else if (work.opcode == WorkOpcode::atomic_write) {
    payload_bytes = kAtomicBytes;
    operation = Operation::atomic_write;
    ext.reth = {work.remote_address, work.rkey, kAtomicBytes};
  } else {
    const bool first = send_packet_ == 0;
    const bool last = send_packet_ + 1 == request.packets;
    payload_bytes = std::min(mtu, work.length_bytes - offset);
    operation = message_operation(work.opcode, first, last);
    if (first) ext.reth = {work.remote_address, work.rkey, work.length_bytes};
    ext.immediate = work.immediate;
    ext.invalidate = work.rkey;
    // Solicited events belong to messages that consume a receive (IBTA 9.2.3).
    solicited = last && work.solicited && work.opcode != WorkOpcode::write;
    const auto since_asked = static_cast<uint32_t>((psn + 1).distance_from(ack_asked_));
    const auto window_used = static_cast<uint32_t>((psn + 1).distance_from(una_));
    // At least twice in a window, so that it can move on.
    const uint32_t interval = std::min(context_.limits.ack_interval_packets, (window() + 1) / 2);
    ack_request = last || since_asked >= interval || window_used >= window();
  }

  std::byte* payload =
      burst.add(context_.qp, Side::requester, context_.attributes.path,
                make_bth(operation, psn, ack_request, solicited), ext, payload_bytes);
  if (payload == nullptr) return Turn::no_buffer;
  if (payload_bytes > 0 && !gather(context_, burst, work, offset, payload_bytes, payload)) {
    // The frame is in the burst already: let it fail as if the memory could not be read.
    burst.discard_added();
    return Turn::idle;
  }

  if (!request.started) {
    request.started = true;
    if (is_read_or_atomic(work.opcode)) ++rd_atomics_;
  }
  const wire::Psn end = psn + packets_covered;
  if (psn.before(sent_end_)) ++context_.counters.retransmitted_frames;
  note_sent(now, psn, end, ack_request || is_read_or_atomic(work.opcode));
  if (end.after(sent_end_)) sent_end_ = end;
  if (ack_deadline_ == kNever) {
    const TimeNs timeout = ack_timeout_ns(context_.attributes.timeout);
    if (timeout != kNever) ack_deadline_ = now + timeout;
  }
  send_packet_ += packets_covered;
  if (send_packet_ >= request.packets) {
    send_packet_ = 0;
    ++send_index_;
  }
  return Turn::sent;
}

void RcRequester::note_drained() {
  if (context_.state != QpState::send_queue_drain || drain_noted_ || !requests_.empty()) return;
  drain_noted_ = true;
  if (context_.attributes.notify_drained)
    context_.events.on_qp_event(context_.qpn, QpEvent::send_queue_drained);
}

void RcRequester::on_fetch_failed(wire::Psn psn) {
  if (context_.state == QpState::error) return;
  for (uint32_t i = 0; i < requests_.size(); ++i) {
    Request& request = requests_[i];
    if (psn.before(request.first_psn) || !psn.before(request.end_psn())) continue;
    request.work.fault = WcStatus::local_protection_error;
    if (send_index_ > i) {
      send_index_ = i;
      send_packet_ = 0;
    }
    if (i == 0) fail_oldest(WcStatus::local_protection_error);
    return;
  }
}

void RcRequester::flush() {
  while (!requests_.empty()) complete_oldest(WcStatus::flush_error);
  ack_deadline_ = rnr_until_ = probe_deadline_ = kNever;
}

void RcRequester::flush_posted() {
  // The queue is bounded, but a program may go on posting: what it posts later rings again.
  constexpr uint32_t kMax = 65536;
  for (uint32_t i = 0; i < kMax; ++i) {
    Request& request = requests_.push_back();
    if (!context_.resources.send_queue->pop(request.work)) {
      requests_.pop_back();
      return;
    }
    request.started = false;
    request.packets = 0;
    complete_oldest(WcStatus::flush_error);
  }
}

}  // namespace rocemu::transport
