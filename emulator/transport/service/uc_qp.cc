#include "emulator/transport/service/uc_qp.h"

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/transport/responder/packet_checks.h"

namespace rocemu::transport {

using wire::MessageKind;

void UcQp::start_receiving() {
  expected_psn_ = context_.attributes.receive_psn;
  message_ = MessageKind::none;
  established_ = false;
}

WcStatus UcQp::find_fault(const SendWork& work) const {
  const bool possible = work.opcode == WorkOpcode::send || work.opcode == WorkOpcode::send_imm ||
                        is_write(work.opcode) || is_local(work.opcode);
  return possible ? WcStatus::success : WcStatus::local_qp_operation_error;
}

const Path* UcQp::address(const SendWork&, wire::Bth& bth, wire::ExtendedHeaders&) const {
  bth.destination_qp = context_.attributes.remote_qpn;
  bth.mig_req = context_.migration.migrated();
  return &context_.attributes.path;
}

void UcQp::on_packet(TimeNs, const wire::Packet& packet) {
  if (const Refusal refusal = check_connection(context_, packet); refusal != Refusal::none) {
    refuse(refusal, packet.bth.psn);
    return;
  }
  if (!established_) {
    established_ = true;
    if (context_.state == QpState::ready_to_receive)
      context_.events.on_qp_event(context_.qpn, QpEvent::communication_established);
  }
  const int32_t distance = packet.bth.psn.distance_from(expected_psn_);
  if (distance < 0 && distance >= -kRepeatedPsns) {
    refuse(Refusal::repeated_psn, packet.bth.psn);
    return;
  }
  // The end of the message under way is lost behind a gap, and when a new one begins.
  if (distance != 0) refuse(Refusal::out_of_sequence_psn, packet.bth.psn);
  if (distance != 0 || packet.traits().starts) message_ = MessageKind::none;
  if (message_ == MessageKind::none) give_up_receive();
  if (!packet.traits().starts && message_ == MessageKind::none) {
    if (distance == 0) ++expected_psn_;
    refuse(Refusal::opcode_sequence, packet.bth.psn);
    return;
  }
  expected_psn_ = packet.bth.psn + 1;
  const Refusal refusal = execute(packet);
  if (refusal == Refusal::none) {
    context_.tally.note_bytes(TraceEvent::payload_received,
                              static_cast<uint32_t>(packet.payload.size()));
    return;
  }
  message_ = MessageKind::none;
  refuse(refusal, packet.bth.psn);
}

Refusal UcQp::execute(const wire::Packet& packet) {
  const wire::OpcodeTraits& traits = packet.traits();
  const Refusal refusal =
      check_message(traits, packet.payload.size(), context_.attributes.path_mtu_bytes, message_);
  if (refusal != Refusal::none) return refusal;
  return traits.kind == MessageKind::send ? execute_send(packet) : execute_write(packet);
}

Refusal UcQp::execute_send(const wire::Packet& packet) {
  const wire::OpcodeTraits& traits = packet.traits();
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  if (traits.starts) received_bytes_ = 0;
  if (const Refusal refusal = take_receive(); refusal != Refusal::none) return refusal;
  if (bytes > receive().length_bytes - received_bytes_) return Refusal::receive_too_short;
  if (!scatter(context_, context_.resources.receive_pd(), receive(), received_bytes_,
               packet.payload, packet.bth.psn))
    return Refusal::receive_protection;
  received_bytes_ += bytes;
  message_ = traits.ends ? MessageKind::none : MessageKind::send;
  if (traits.ends) announce(packet, received_bytes_);
  return Refusal::none;
}

Refusal UcQp::execute_write(const wire::Packet& packet) {
  const wire::OpcodeTraits& traits = packet.traits();
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  if ((context_.attributes.access & kRemoteWrite) == 0) return Refusal::access_not_enabled;
  MemoryRange range;
  const auto allowed = [&](uint32_t length_bytes) {
    return length_bytes == 0 ||
           context_.memory.check_remote(context_.resources.pd, context_.qpn, write_.rkey,
                                        write_.virtual_address, length_bytes, kRemoteWrite, range);
  };
  if (traits.starts) {
    received_bytes_ = 0;
    write_ = packet.ext.reth;
    if (write_.length_bytes > kMaxMessageBytes) return Refusal::message_too_long;
    if (!allowed(write_.length_bytes)) return Refusal::bad_rkey;
  }
  if (traits.ends ? bytes != write_.length_bytes : bytes >= write_.length_bytes)
    return Refusal::dma_length;
  if (traits.imm) {
    if (const Refusal refusal = take_receive(); refusal != Refusal::none) return refusal;
  }
  if (!allowed(bytes)) return Refusal::bad_rkey;
  if (bytes > 0)
    context_.memory.scatter(
        range, packet.payload.data(), bytes,
        context_.deferred.note_scatter(*this, ScatterKind::remote_write, packet.bth.psn));
  write_.virtual_address += bytes;
  write_.length_bytes -= bytes;
  received_bytes_ += bytes;
  message_ = traits.ends ? MessageKind::none : MessageKind::write;
  if (traits.ends) context_.tally.note(TraceEvent::write_executed, packet.bth.psn.value());
  if (traits.imm) announce(packet, received_bytes_);
  return Refusal::none;
}

void UcQp::announce(const wire::Packet& packet, uint32_t byte_length) {
  Completion completion;
  completion.opcode = packet.traits().kind == MessageKind::send ? WcOpcode::receive
                                                                : WcOpcode::receive_rdma_with_imm;
  completion.has_immediate = packet.traits().imm;
  completion.immediate = packet.ext.immediate;
  completion.solicited = packet.bth.solicited;
  completion.byte_length = byte_length;
  complete_receive(completion);
}

}  // namespace rocemu::transport
