// The responder's part of tag matching (interface/tag_matching.h).
//
// - Eager, with a tag of the list: its payload goes to the buffer. One completion when that is one
//   packet, else one for the match and one for the data.
// - Rendezvous with such a tag: a completion for the match; the QP reads the payload into the
//   buffer, which completes, and then tells the peer. A payload that is too long is left to the
//   program, with both headers.
// - Either without such a tag is unexpected: the message goes to an ordinary receive of the SRQ,
//   headers and all.
// - Anything else goes there, too, and is no part of the matching.
#include "emulator/transport/qp/payload.h"
#include "emulator/transport/responder/rc_responder.h"

namespace rocemu::transport {

using verbs::TagOperation;
using wire::MessageKind;
using namespace verbs::wc_flag;

Refusal RcResponder::execute_tagged_send(const wire::Packet& packet, const SharedReceiver& target) {
  const wire::OpcodeTraits& traits = packet.traits();
  Refusal refusal = traits.starts ? begin_tagged(packet, target) : Refusal::none;
  if (refusal != Refusal::none || !receive_.taken) return refusal;  // an offer is dealt with
  refusal = tagged_.matched ? fill_tagged(packet, target) : fill_receive(packet, target);
  if (refusal != Refusal::none) return refusal;
  if (traits.ieth && !context_.memory.invalidate(target.pd, context_.qpn, packet.ext.invalidate))
    return Refusal::bad_invalidate;
  message_ = traits.ends ? MessageKind::none : MessageKind::send;
  if (traits.ends) {
    const uint8_t match = traits.starts ? kTmMatch : uint8_t{0};
    complete_tagged(WcStatus::success, packet, tagged_.matched ? match | kTmDataValid : 0);
  } else if (traits.starts && tagged_.matched) {
    announce_match();
  }
  accept(packet, 1, traits.ends);
  return Refusal::none;
}

Refusal RcResponder::begin_tagged(const wire::Packet& packet, const SharedReceiver& target) {
  TagMatching& tags = *context_.resources.tags;
  const std::optional<TagHeader> header = parse_tag_header(packet.payload);
  tagged_ = {};
  const bool has_tag = header && (header->operation == TagOperation::eager ||
                                  header->operation == TagOperation::rendezvous);
  std::optional<RendezvousHeader> offer;
  if (has_tag && header->operation == TagOperation::rendezvous && packet.traits().ends)
    offer = parse_rendezvous_header(packet.payload);
  const bool matchable = has_tag && (offer || header->operation == TagOperation::eager);
  if (matchable && tags.take(header->tag, receive_.work)) {
    take_buffer(*header);
    return offer ? take_offer(packet, target, *offer) : Refusal::none;
  }
  const Refusal refusal = take_receive(target);
  if (refusal != Refusal::none) return refusal;
  if (has_tag) {
    tags.note_unexpected();
  } else {
    tagged_.opcode = WcOpcode::tm_no_tag;
  }
  return Refusal::none;
}

void RcResponder::take_buffer(const TagHeader& header) {
  receive_.taken = true;
  receive_.received_bytes = 0;
  receive_.inline_data.length_bytes = 0;
  tagged_.matched = true;
  tagged_.header = header;
}

Refusal RcResponder::take_offer(const wire::Packet& packet, const SharedReceiver& target,
                                const RendezvousHeader& offer) {
  const std::span headers = packet.payload.first(kRendezvousBytes);
  if (offer.length_bytes <= receive_.work.length_bytes) {
    context_.resources.tags->read(receive_.work, offer, headers);
    announce_match();
    receive_.taken = false;
  } else {
    const auto bytes = std::min(kRendezvousBytes, receive_.work.length_bytes);
    if (!scatter(context_, receive_pd(target), receive_.work, 0, headers.first(bytes),
                 packet.bth.psn))
      return Refusal::receive_protection;
    receive_.received_bytes = bytes;
    complete_tagged(WcStatus::tm_rendezvous_incomplete, packet, kTmMatch);
  }
  accept(packet, 1, true);
  return Refusal::none;
}

Refusal RcResponder::fill_tagged(const wire::Packet& packet, const SharedReceiver& target) {
  const std::span payload = packet.payload.subspan(packet.traits().starts ? TagHeader::kBytes : 0);
  const uint32_t offset = receive_.received_bytes;
  if (payload.size() > receive_.work.length_bytes - offset) return Refusal::receive_too_short;
  receive_.received_bytes += static_cast<uint32_t>(payload.size());
  return scatter(context_, receive_pd(target), receive_.work, offset, payload, packet.bth.psn)
             ? Refusal::none
             : Refusal::receive_protection;
}

// The data follow, with a completion of their own.
void RcResponder::announce_match() {
  Completion& completion =
      context_.deferred.complete(context_.qp, Side::responder, *context_.resources.receive_cq);
  completion.wr_id = receive_.work.wr_id;
  completion.qpn = context_.qpn;
  completion.opcode = WcOpcode::tm_receive;
  completion.tag_flags = kTmMatch;
  completion.set_tag(tagged_.header.tag, tagged_.header.context);
}

void RcResponder::complete_tagged(WcStatus status, const wire::Packet& packet, uint8_t flags) {
  Completion* const completion = complete_receive(status, &packet, receive_.received_bytes);
  completion->opcode = tagged_.opcode;
  completion->tag_flags = flags;
  if ((flags & kTmMatch) != 0) completion->set_tag(tagged_.header.tag, tagged_.header.context);
}

}  // namespace rocemu::transport
