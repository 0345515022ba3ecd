// RcResponder's part of selective repeat: out_of_order.h has the rules.
#include "emulator/transport/responder/out_of_order.h"

#include <algorithm>

#include "emulator/transport/qp/payload.h"
#include "emulator/transport/responder/rc_responder.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

using wire::MessageKind;

namespace {

// Stands for a payload that is in place: its bytes are nowhere looked at, only its length is.
constexpr std::array<std::byte, wire::kMaxMtuBytes> kInPlace{};

}  // namespace

// Returns false when the peer does not have selective repeat.
bool RcResponder::take_ahead(const wire::Packet& packet) {
  if (!wire::selective::is_understood_by_sender(packet.bth)) return false;
  const wire::Psn psn = packet.bth.psn;
  const bool fits = psn.before(expected_psn_ + ArrivalsAhead::kMax);
  if (fits && !ahead_->arrivals.has(psn) && place_ahead(packet)) {
    context_.tally.note(TraceEvent::placed_ahead, psn.value());
  } else {
    note_refusal(context_, rule_of(Refusal::out_of_sequence_psn), psn);
  }
  queue_acknowledge(wire::syndrome::kNakSequence, expected_psn_);
  return true;
}

bool RcResponder::place_ahead(const wire::Packet& packet) {
  const std::span payload = packet.payload;
  if (payload.size() > context_.attributes.path_mtu_bytes) return false;
  MemoryRange range;
  const bool kept = payload.size() <= ArrivalsAhead::kKeptBytes;
  const MessageKind kind = packet.traits().kind;
  const bool placed = kept || (kind == MessageKind::write && write_ahead(packet, range)) ||
                      (kind == MessageKind::send && fill_ahead(packet));
  if (!placed) return false;
  const bool writes = !kept && kind == MessageKind::write;
  ArrivalsAhead::Arrival& arrival = ahead_->arrivals.add(
      expected_psn_, packet.bth.psn, range, writes ? static_cast<uint32_t>(payload.size()) : 0);
  arrival.bth = packet.bth;
  arrival.ext = packet.ext;
  arrival.payload_bytes = static_cast<uint32_t>(payload.size());
  arrival.in_place = !kept;
  if (kept) std::ranges::copy(payload, arrival.kept.begin());
  return true;
}

bool RcResponder::write_ahead(const wire::Packet& packet, MemoryRange& range) {
  const wire::Reth& reth = packet.ext.reth;
  const auto bytes = static_cast<uint32_t>(packet.payload.size());
  const bool has_reth = packet.traits().reth || wire::selective::is_placed(packet.bth);
  SharedReceiver target;
  if (!has_reth || bytes > reth.length_bytes || (context_.attributes.access & kRemoteWrite) == 0 ||
      !find_target(packet, target) || !check_remote(target, reth, bytes, kRemoteWrite, range))
    return false;
  write_around(range, packet.payload, packet.bth.psn, ScatterKind::ahead);
  return true;
}

// Writes what no WRITE behind it has written already: rule 5.
void RcResponder::write_around(const MemoryRange& range, std::span<const std::byte> payload,
                               wire::Psn psn, ScatterKind kind) {
  std::array<ArrivalsAhead::Piece, ArrivalsAhead::kMaxPieces> pieces;
  const size_t count =
      ahead_->arrivals.pieces_of(psn, range, static_cast<uint32_t>(payload.size()), pieces);
  for (const ArrivalsAhead::Piece& piece : std::span(pieces).first(count)) {
    if (piece.length_bytes == 0) continue;
    MemoryRange part = range;
    part.address += piece.offset_bytes;
    if (part.mapped != nullptr) part.mapped += piece.offset_bytes;
    const uint32_t tag = context_.deferred.note_scatter(context_.qp, kind, psn);
    context_.memory.scatter(part, payload.data() + piece.offset_bytes, piece.length_bytes, tag);
  }
}

bool RcResponder::fill_ahead(const wire::Packet& packet) {
  SharedReceiver target;
  if (!wire::selective::is_placed(packet.bth) || context_.resources.tags != nullptr ||
      context_.resources.xrc_domain != nullptr || !find_target(packet, target))
    return false;
  const wire::ReceivePlace& place = packet.ext.receive_place;
  const uint32_t messages = place.receive - ahead_->receives_done;
  // A message has a packet at least, and what other QPs have a share in is taken for the message
  // under way and the next one alone.
  const auto packets = static_cast<uint32_t>(packet.bth.psn.distance_from(expected_psn_));
  if (messages > packets || (context_.resources.receives_are_shared && messages > 1)) return false;
  const ReceiveWork* const receive = claim_receive(messages, target);
  const uint64_t offset = uint64_t{place.packet} * context_.attributes.path_mtu_bytes;
  if (receive == nullptr || receive->fault != WcStatus::success ||
      offset + packet.payload.size() > receive->length_bytes)
    return false;
  return scatter(context_, receive_pd(target), receive->sges.view(), static_cast<uint32_t>(offset),
                 packet.payload, ScatterKind::ahead, packet.bth.psn);
}

// The receive of the message that is so many behind the one under way, which is taken off the
// queue. Null when it is not posted yet, or too far away to be true.
const ReceiveWork* RcResponder::claim_receive(uint32_t messages, const SharedReceiver& target) {
  if (messages >= ArrivalsAhead::kMax) return nullptr;
  if (receive_.taken && messages == 0) return &receive_.work;
  const uint32_t index = messages - (receive_.taken ? 1 : 0);
  while (ahead_->receives.size() <= index) {
    if (!target.queue->pop(ahead_->receives.push_back())) {
      ahead_->receives.pop_back();
      return nullptr;
    }
  }
  return &ahead_->receives[index];
}

bool RcResponder::take_claimed_receive() {
  if (ahead_->receives.empty()) return false;
  std::swap(receive_.work, ahead_->receives.front());
  ahead_->receives.pop_front();
  return true;
}

// False when a placed packet that is about to be executed has named another place than the one that
// it would have got without naming any.
bool RcResponder::is_in_its_place(const wire::Packet& packet) const {
  if (!wire::selective::is_placed(packet.bth)) return true;
  const wire::OpcodeTraits& traits = packet.traits();
  if (traits.kind == MessageKind::write && !traits.starts) {
    const wire::Reth& said = packet.ext.reth;
    return said.virtual_address == write_.rest.virtual_address && said.rkey == write_.rest.rkey &&
           said.length_bytes == write_.rest.length_bytes;
  }
  if (traits.kind != MessageKind::send || !ahead_->in_place) return true;
  const wire::ReceivePlace& said = packet.ext.receive_place;
  const uint32_t received = traits.starts ? 0 : receive_.received_bytes;
  return said.receive == ahead_->receives_done &&
         uint64_t{said.packet} * context_.attributes.path_mtu_bytes == received;
}

// The expected packet has been executed: those that have waited for it are next. They are one batch
// with what else the burst brings.
void RcResponder::execute_arrived() {
  ArrivalsAhead& arrivals = ahead_->arrivals;
  if (arrivals.empty()) return;
  // Data that was put in place must be there for certain.
  context_.deferred.flush(context_.memory);
  if (context_.state == QpState::error) return;
  while (const ArrivalsAhead::Arrival* const found = arrivals.find(expected_psn_)) {
    const ArrivalsAhead::Arrival arrival = *found;
    arrivals.remove(expected_psn_);
    wire::Packet packet;
    packet.bth = arrival.bth;
    packet.ext = arrival.ext;
    if (arrival.in_place) {
      packet.payload = std::span(kInPlace).first(arrival.payload_bytes);
    } else if (arrival.payload_bytes > 0) {
      packet.payload = context_.deferred.keep(std::span(arrival.kept).first(arrival.payload_bytes));
    }
    ahead_->in_place = arrival.in_place;
    const Refusal refusal = execute(packet);
    ahead_->in_place = false;
    if (refusal != Refusal::none) {
      refuse(refusal, packet.bth.psn);
      return;
    }
    if (context_.state == QpState::error) return;
  }
  const bool gaps = !arrivals.empty();
  queue_acknowledge(gaps ? wire::syndrome::kNakSequence : wire::syndrome::kAck,
                    gaps ? expected_psn_ : expected_psn_ - 1);
}

// `psns` have been executed from `first` on; the message ends with them, or does not.
void RcResponder::note_executed(const wire::Packet& packet, wire::Psn first, uint32_t psns) {
  responses_.take_back_nak(first);
  if (psns == 1) {
    ahead_->arrivals.remove(first);
  } else {
    ahead_->arrivals.forget_before(expected_psn_);
  }
  const wire::OpcodeTraits& traits = packet.traits();
  if (traits.ends && (traits.kind == MessageKind::send || traits.imm)) ++ahead_->receives_done;
}

void RcResponder::flush_ahead() {
  ahead_->arrivals.release();
  while (take_claimed_receive()) {
    tell_taken(receive_.work);
    complete_receive(WcStatus::flush_error, nullptr, 0);
  }
}

}  // namespace rocemu::transport
