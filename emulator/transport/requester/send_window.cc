#include "emulator/transport/requester/send_window.h"

#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"

namespace rocemu::transport {

void SendWindow::reset() {
  requests_.release();
  index_ = packet_ = rd_atomics_ = answered_reads_ = 0;
}

SendWindow::Request* SendWindow::pop() {
  if (context_.state != QpState::ready_to_send) return nullptr;
  Request& request = requests_.push_back();
  if (context_.resources.send_queue->pop(request.work)) {
    tell_taken(request.work);
    return &request;
  }
  requests_.pop_back();
  return nullptr;
}

inline void SendWindow::tell_taken(const SendWork& work) const {
  if (Observer* const observer = context_.tally.observer()) [[unlikely]]
    observer->on_send_taken(context_.qpn, work);
}

void SendWindow::number(Request& request) {
  request.first_psn = next_psn_;
  request.responses = 0;
  request.started = request.answered = false;
  const uint32_t packet_bytes = request.work.opcode == WorkOpcode::tso
                                    ? request.work.segmentation.payload_bytes
                                    : context_.attributes.path_mtu_bytes;
  request.packets = !request.sends_packets() ? 0
                    : is_atomic(request.work.opcode)
                        ? 1
                        : packets_of(request.work.length_bytes, packet_bytes);
  next_psn_ = request.end_psn();
}

void SendWindow::seek(wire::Psn psn) {
  packet_ = 0;
  for (index_ = 0; index_ < size(); ++index_) {
    const Request& request = requests_[index_];
    if (request.sends_packets() && !psn.before(request.end_psn())) continue;
    if (request.sends_packets() && psn.after(request.first_psn))
      packet_ = static_cast<uint32_t>(psn.distance_from(request.first_psn));
    return;
  }
}

void SendWindow::skip_to(wire::Psn psn) {
  if (index_ != 0 || empty()) return;
  const Request& request = oldest();
  const int32_t answered = psn.distance_from(request.first_psn);
  if (answered > static_cast<int32_t>(packet_)) packet_ = static_cast<uint32_t>(answered);
  if (packet_ < request.packets || request.packets == 0) return;
  packet_ = 0;
  index_ = 1;
}

bool SendWindow::note_unreadable(wire::Psn psn) {
  for (uint32_t i = 0; i < size(); ++i) {
    Request& request = requests_[i];
    if (psn.before(request.first_psn) || !psn.before(request.end_psn())) continue;
    request.work.fault = WcStatus::local_protection_error;
    if (index_ > i) {
      index_ = i;
      packet_ = 0;
    }
    return i == 0;
  }
  return false;
}

void SendWindow::complete_oldest(WcStatus status) {
  const SendWork& work = oldest().work;
  if (oldest().started && is_read_or_atomic(work.opcode)) --rd_atomics_;
  if (oldest().answered) --answered_reads_;
  Completion& completion = context_.deferred.complete(context_.qp, Side::requester,
                                                      *context_.resources.send_cq, work.signaled);
  completion.wr_id = work.wr_id;
  completion.qpn = context_.qpn;
  completion.status = status;
  completion.opcode = completion_opcode(work.opcode);
  completion.solicited = status != WcStatus::success;
  completion.byte_length = is_atomic(work.opcode) ? kAtomicBytes : work.length_bytes;
  if (status != WcStatus::success)
    context_.tally.note(TraceEvent::completion_with_error, static_cast<uint32_t>(status));
  context_.resources.send_queue->release(1);
  requests_.pop_front();
  if (index_ > 0) {
    --index_;
  } else {
    packet_ = 0;
  }
}

void SendWindow::add_facts(WaitFacts& facts) const {
  facts.may_take = context_.state == QpState::ready_to_send;
  facts.may_send = facts.may_take || context_.state == QpState::send_queue_drain;
  facts.requests = size();
  if (const SendQueue* const queue = context_.resources.send_queue) {
    facts.posted = queue->waiting();
    facts.completed = queue->released();
  }
  if (!at_end()) {
    facts.next = current().sends_packets() ? WaitFacts::Next::packet : WaitFacts::Next::not_sent;
  } else if (facts.posted > 0) {
    facts.next = WaitFacts::Next::unknown;
  }
}

void SendWindow::flush() {
  while (!empty()) complete_oldest(WcStatus::flush_error);
}

void SendWindow::flush_posted() {
  if (flush_posted(Qp::kFlushAtOnce) == Qp::kFlushAtOnce)
    context_.deferred.flush_later(context_.qp);
}

uint32_t SendWindow::flush_posted(uint32_t most) {
  for (uint32_t i = 0; i < most; ++i) {
    Request& request = requests_.push_back();
    if (!context_.resources.send_queue->pop(request.work)) {
      requests_.pop_back();
      return i;
    }
    tell_taken(request.work);
    request.started = request.answered = false;
    complete_oldest(WcStatus::flush_error);
  }
  return most;
}

void SendWindow::note_drained() {
  if (context_.state != QpState::send_queue_drain || drain_noted_ || !empty()) return;
  drain_noted_ = true;
  if (context_.attributes.notify_drained)
    context_.events.on_qp_event(context_.qpn, QpEvent::send_queue_drained);
}

}  // namespace rocemu::transport
