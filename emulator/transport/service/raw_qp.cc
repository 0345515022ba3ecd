#include "emulator/transport/service/raw_qp.h"

#include <algorithm>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/responder/packet_checks.h"
#include "emulator/wire/tcp_segment.h"

namespace rocemu::transport {

WcStatus RawQp::find_fault(const SendWork& work) const {
  if (work.opcode == WorkOpcode::tso) return find_fault_of_tso(work);
  if (work.opcode != WorkOpcode::send) return WcStatus::local_qp_operation_error;
  return work.length_bytes >= kEthernetBytes && work.length_bytes <= kMaxPlainFrameBytes
             ? WcStatus::success
             : WcStatus::local_length_error;
}

WcStatus RawQp::find_fault_of_tso(const SendWork& work) {
  const Segmentation& segmentation = work.segmentation;
  if (segmentation.payload_bytes == 0 || !wire::are_tcp_headers(segmentation.headers))
    return WcStatus::local_qp_operation_error;
  const uint64_t frame_bytes = segmentation.headers.size() +
                               uint64_t{std::min(segmentation.payload_bytes, work.length_bytes)};
  return work.length_bytes <= kMaxTsoBytes && frame_bytes <= kMaxPlainFrameBytes
             ? WcStatus::success
             : WcStatus::local_length_error;
}

// Refuses a packet of a peer that took the QP's number for that of a QP that speaks RoCE.
void RawQp::on_packet(TimeNs, const wire::Packet& packet) {
  refuse(Refusal::wrong_transport, packet.bth.psn);
}

void RawQp::on_frame(std::span<const std::byte> frame, uint64_t number, const Flow& flow) {
  if (last_frame_ == number) return;
  last_frame_ = number;
  context_.tally.note(TraceEvent::delivered);
  const Refusal refusal = receives(context_.state) ? execute(frame, flow) : Refusal::not_receiving;
  if (refusal != Refusal::none) refuse(refusal, {});
}

Refusal RawQp::execute(std::span<const std::byte> frame, const Flow& flow) {
  if (const Refusal refusal = take_receive(); refusal != Refusal::none) return refusal;
  const auto bytes = static_cast<uint32_t>(frame.size());
  if (bytes > receive().length_bytes) return Refusal::receive_too_short;
  context_.tally.note_bytes(TraceEvent::payload_received, bytes);
  if (!scatter(context_, context_.resources.receive_pd(), receive(), 0, frame, {}))
    return Refusal::receive_protection;
  Completion completion;
  completion.opcode = WcOpcode::receive;
  completion.byte_length = bytes;
  completion.has_flow_tag = flow.has_tag;
  completion.flow_tag = flow.tag;
  complete_receive(completion);
  return Refusal::none;
}

}  // namespace rocemu::transport
