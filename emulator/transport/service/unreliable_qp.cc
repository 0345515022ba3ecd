#include "emulator/transport/service/unreliable_qp.h"

namespace rocemu::transport {

UnreliableQp::UnreliableQp(const EndpointParts& endpoint, wire::Transport transport, wire::Qpn qpn,
                           const QpResources& resources, Sends sends)
    : Qp(endpoint, transport, qpn, resources), requester_(context_, *this, sends) {}

QpLoad UnreliableQp::load() const {
  QpLoad load;
  requester_.add_load(load);
  return load;
}

void UnreliableQp::on_new_state(QpState before) {
  switch (context_.state) {
    case QpState::reset:
      requester_.reset();
      receive_taken_ = false;
      start_receiving();
      break;
    case QpState::ready_to_receive:
      start_receiving();
      break;
    case QpState::ready_to_send:
      if (before == QpState::ready_to_receive) requester_.start();
      if (before == QpState::send_queue_error) requester_.go_on();
      break;
    case QpState::send_queue_drain:
      requester_.note_draining();
      break;
    default:
      break;
  }
}

void UnreliableQp::add_facts(TimeNs, WaitFacts& facts) const { requester_.add_facts(facts); }

Turn UnreliableQp::transmit(TimeNs now, Burst& burst) { return requester_.transmit(now, burst); }

void UnreliableQp::flush() {
  requester_.flush();
  if (receive_taken_) end_receive(WcStatus::flush_error);
}

inline void UnreliableQp::tell_taken() const {
  if (Observer* const observer = context_.tally.observer()) [[unlikely]]
    observer->on_receive_taken(context_.qpn, receive_);
}

void UnreliableQp::flush_posted() {
  requester_.flush_posted();
  if (context_.state != QpState::error || context_.resources.receives_are_shared) return;
  for (uint32_t i = 0; i < kFlushAtOnce; ++i) {
    if (!context_.resources.receive_queue->pop(receive_)) return;
    tell_taken();
    end_receive(WcStatus::flush_error);
  }
  context_.deferred.flush_later(*this);
}

Refusal UnreliableQp::take_receive() {
  if (receive_taken_) return Refusal::none;
  if (!context_.resources.receive_queue->pop(receive_)) return Refusal::receiver_not_ready;
  tell_taken();
  receive_taken_ = true;
  return receive_.fault == WcStatus::success ? Refusal::none : Refusal::receive_malformed;
}

void UnreliableQp::complete_receive(Completion completion) {
  receive_taken_ = false;
  completion.wr_id = receive_.wr_id;
  completion.qpn = context_.qpn;
  if (completion.status != WcStatus::success) {
    completion.opcode = WcOpcode::receive;
    completion.solicited = true;
    context_.tally.note(TraceEvent::completion_with_error,
                        static_cast<uint32_t>(completion.status));
  }
  context_.deferred.complete(*this, Side::responder, *context_.resources.receive_cq) = completion;
}

void UnreliableQp::end_receive(WcStatus status) {
  Completion completion;
  completion.status = status;
  complete_receive(completion);
}

void UnreliableQp::give_up_receive() {
  if (receive_taken_ && context_.resources.receives_are_shared)
    end_receive(WcStatus::remote_invalid_request_error);
}

void UnreliableQp::refuse(Refusal refusal, wire::Psn psn) {
  const RefusalRule& rule = rule_of(refusal);
  const Reaction& reaction = rule.reaction(context_.transport);
  note_refusal(context_, rule, psn);
  if (reaction.kind == Reaction::Kind::drop_message) give_up_receive();
  if (reaction.kind == Reaction::Kind::fail) fail(rule);
}

void UnreliableQp::fail(const RefusalRule& rule) {
  const bool completed = receive_taken_ && rule.receive_status != WcStatus::flush_error;
  if (receive_taken_) end_receive(rule.receive_status);
  enter_error();
  context_.events.on_qp_error(context_.qpn);
  if (!completed && rule.event) context_.events.on_qp_event(context_.qpn, *rule.event);
}

void UnreliableQp::on_fetch_failed(Side, wire::Psn psn) { requester_.on_fetch_failed(psn); }

void UnreliableQp::on_scatter_failed(ScatterKind kind, wire::Psn psn, bool announced) {
  if (context_.state == QpState::error) return;
  refuse(kind == ScatterKind::remote_write ? Refusal::remote_memory_lost
         : announced                       ? Refusal::completed_receive_memory_lost
                                           : Refusal::receive_memory_lost,
         psn);
}

}  // namespace rocemu::transport
