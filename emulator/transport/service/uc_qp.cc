#include "emulator/transport/service/uc_qp.h"

#include "emulator/transport/qp/payload.h"

namespace rocemu::transport {

namespace {

using wire::Operation;

// UC has no operations above these (wire/opcode.cc).
bool is_send_op(Operation op) { return op <= Operation::send_only_imm; }
bool is_first_or_middle(Operation op) {
  return op == Operation::send_first || op == Operation::send_middle ||
         op == Operation::write_first || op == Operation::write_middle;
}
bool is_only(Operation op) {
  return op == Operation::send_only || op == Operation::send_only_imm ||
         op == Operation::write_only || op == Operation::write_only_imm;
}
bool starts_message(Operation op) {
  return op == Operation::send_first || op == Operation::write_first || is_only(op);
}

}  // namespace

void UcQp::start_receiving() {
  expected_psn_ = context_.attributes.receive_psn;
  message_ = Message::none;
  established_ = false;
}

WcStatus UcQp::find_fault(const SendWork& work) const {
  const bool possible = work.opcode == WorkOpcode::send || work.opcode == WorkOpcode::send_imm ||
                        is_write(work.opcode) || is_local(work.opcode);
  return possible ? WcStatus::success : WcStatus::local_qp_operation_error;
}

const Path* UcQp::address(const SendWork&, wire::Bth& bth, wire::ExtendedHeaders&) const {
  bth.destination_qp = context_.attributes.remote_qpn;
  return &context_.attributes.path;
}

void UcQp::on_packet(TimeNs, const wire::Packet& packet) {
  if (!receives()) {
    ++context_.counters.rx_no_qp;
    return;
  }
  const Path& path = context_.attributes.path;
  if (packet.transport() != context_.transport || packet.ip.source != path.remote_gid ||
      packet.ip.destination != path.local_gid || !pkey_matches(packet)) {
    ++context_.counters.rx_mismatched;
    return;
  }
  if (!established_) {
    established_ = true;
    if (context_.state == QpState::ready_to_receive)
      context_.events.on_qp_event(context_.qpn, QpEvent::communication_established);
  }
  const int32_t ahead = packet.bth.psn.distance_from(expected_psn_);
  if (ahead < 0 && ahead >= -kRepeatedPsns) {
    ++context_.counters.duplicate_requests;
    return;
  }
  const bool starts = starts_message(packet.operation());
  if (ahead != 0) {
    ++context_.counters.out_of_sequence;
    message_ = Message::none;
  }
  // A new message ends one whose end was lost.
  if (starts) message_ = Message::none;
  if (message_ == Message::none) give_up_receive();
  if (!starts && message_ == Message::none) {
    ++context_.counters.rx_dropped;
    if (ahead == 0) ++expected_psn_;
    return;
  }
  expected_psn_ = packet.bth.psn + 1;
  Outcome outcome = Outcome::dropped;
  if (well_formed(packet))
    outcome = is_send_op(packet.operation()) ? execute_send(packet) : execute_write(packet);
  if (outcome == Outcome::taken) {
    context_.counters.rx_payload_bytes += packet.payload.size();
    return;
  }
  message_ = Message::none;
  if (outcome != Outcome::dropped) return;
  ++context_.counters.rx_dropped;
  give_up_receive();
}

// Whether the payload length fits the opcode, and the opcode what is under way (IBTA 9.8.2.2.5).
bool UcQp::well_formed(const wire::Packet& packet) const {
  const Operation op = packet.operation();
  const size_t bytes = packet.payload.size();
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  if (is_first_or_middle(op) ? bytes != mtu : bytes > mtu) return false;
  if (starts_message(op)) return true;
  if (!is_first_or_middle(op) && bytes == 0) return false;
  return message_ == (is_send_op(op) ? Message::send : Message::write);
}

UcQp::Outcome UcQp::execute_send(const wire::Packet& packet) {
  const Operation op = packet.operation();
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  if (starts_message(op)) received_bytes_ = 0;
  if (!take_receive()) return context_.state == QpState::error ? Outcome::failed : Outcome::dropped;
  if (bytes > receive().length_bytes - received_bytes_) return Outcome::dropped;
  if (!scatter(context_, receive(), received_bytes_, packet.payload, packet.bth.psn)) {
    fail_receive(WcStatus::local_protection_error, QpEvent::fatal);
    return Outcome::failed;
  }
  received_bytes_ += bytes;
  message_ = is_first_or_middle(op) ? Message::send : Message::none;
  if (message_ == Message::none) announce(packet, received_bytes_);
  return Outcome::taken;
}

UcQp::Outcome UcQp::execute_write(const wire::Packet& packet) {
  const Operation op = packet.operation();
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  const bool ends = !is_first_or_middle(op);
  if ((context_.attributes.access & kRemoteWrite) == 0) return Outcome::dropped;
  MemoryRange range;
  const auto allowed = [&](uint32_t length_bytes) {
    return length_bytes == 0 ||
           context_.memory.check_remote(context_.resources.pd, context_.qpn, write_.rkey,
                                        write_.virtual_address, length_bytes, kRemoteWrite, range);
  };
  if (starts_message(op)) {
    received_bytes_ = 0;
    write_ = packet.ext.reth;
    if (!allowed(write_.length_bytes)) return Outcome::dropped;
  }
  if (ends ? bytes != write_.length_bytes : bytes >= write_.length_bytes) return Outcome::dropped;
  if (packet.traits().imm && !take_receive())
    return context_.state == QpState::error ? Outcome::failed : Outcome::dropped;
  if (!allowed(bytes)) return Outcome::dropped;
  if (bytes > 0)
    context_.memory.scatter(
        range, packet.payload.data(), bytes,
        context_.deferred.note_scatter(*this, ScatterKind::remote_write, packet.bth.psn));
  write_.virtual_address += bytes;
  write_.length_bytes -= bytes;
  received_bytes_ += bytes;
  message_ = ends ? Message::none : Message::write;
  if (packet.traits().imm) announce(packet, received_bytes_);
  return Outcome::taken;
}

void UcQp::announce(const wire::Packet& packet, uint32_t byte_length) {
  Completion completion;
  completion.opcode =
      is_send_op(packet.operation()) ? WcOpcode::receive : WcOpcode::receive_rdma_with_imm;
  completion.has_immediate = packet.traits().imm;
  completion.immediate = packet.ext.immediate;
  completion.solicited = packet.bth.solicited;
  completion.byte_length = byte_length;
  complete_receive(completion);
}

}  // namespace rocemu::transport
