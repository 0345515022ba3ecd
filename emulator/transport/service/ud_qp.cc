#include "emulator/transport/service/ud_qp.h"

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/responder/packet_checks.h"

namespace rocemu::transport {

namespace {

constexpr uint32_t kControlledQkey = 0x80000000;

}  // namespace

WcStatus UdQp::find_fault(const SendWork& work) const {
  if (work.opcode != WorkOpcode::send && work.opcode != WorkOpcode::send_imm)
    return WcStatus::local_qp_operation_error;
  if (work.length_bytes > context_.attributes.path_mtu_bytes) return WcStatus::local_length_error;
  return context_.resources.addresses->find(context_.resources.pd, work.address_handle) != nullptr
             ? WcStatus::success
             : WcStatus::local_qp_operation_error;
}

const Path* UdQp::address(const SendWork& work, wire::Bth& bth, wire::ExtendedHeaders& ext) const {
  bth.destination_qp = work.remote_qpn;
  // A request cannot name a controlled Q_Key: it then gets the QP's own (IBTA vol 1, 10.2.5).
  const bool own = (work.remote_qkey & kControlledQkey) != 0;
  ext.deth = {own ? context_.attributes.qkey : work.remote_qkey, context_.qpn};
  return context_.resources.addresses->find(context_.resources.pd, work.address_handle);
}

// Says whether the network may have brought a datagram by mistake or ill will.
Refusal UdQp::check(const wire::Packet& packet) const {
  if (!receives(context_.state)) return Refusal::not_receiving;
  if (packet.transport() != context_.transport) return Refusal::wrong_transport;
  if (!pkey_matches(context_.attributes.pkey, packet.bth.pkey)) return Refusal::wrong_pkey;
  if (!is_to_port(packet, *context_.resources.addresses)) return Refusal::wrong_address;
  if (packet.payload.size() > context_.attributes.path_mtu_bytes) return Refusal::datagram_too_long;
  if (packet.ext.deth.qkey != context_.attributes.qkey) return Refusal::wrong_qkey;
  return Refusal::none;
}

void UdQp::on_packet(TimeNs, const wire::Packet& packet) {
  Refusal refusal = check(packet);
  if (refusal == Refusal::none) refusal = execute(packet);
  if (refusal != Refusal::none) refuse(refusal, packet.bth.psn);
}

Refusal UdQp::execute(const wire::Packet& packet) {
  if (const Refusal refusal = take_receive(); refusal != Refusal::none) return refusal;
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  if (kGrhBytes + bytes > receive().length_bytes) return Refusal::receive_too_short;
  context_.tally.note_bytes(TraceEvent::payload_received, bytes);
  if (!scatter_grh(context_, receive(), packet) ||
      !scatter(context_, context_.resources.receive_pd(), receive(), kGrhBytes, packet.payload,
               packet.bth.psn))
    return Refusal::receive_protection;

  Completion completion;
  completion.opcode = WcOpcode::receive;
  completion.has_immediate = packet.traits().imm;
  completion.immediate = packet.ext.immediate;
  completion.solicited = packet.bth.solicited;
  completion.byte_length = kGrhBytes + bytes;
  completion.has_grh = true;
  completion.source_qp = packet.ext.deth.source_qp;
  completion.service_level = grh_service_level(packet);
  complete_receive(completion);
  return Refusal::none;
}

}  // namespace rocemu::transport
