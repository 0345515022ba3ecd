// The responder's answers on their way out: ACKs and NAKs, READ responses, atomic ACKs.
#include <algorithm>
#include <utility>

#include "emulator/transport/qp/qp.h"
#include "emulator/transport/responder/rc_responder.h"

namespace rocemu::transport {

using wire::Operation;

void RcResponder::queue_acknowledge(uint8_t syndrome, wire::Psn psn) {
  if (!responses_.empty() && responses_.back().kind == Response::Kind::acknowledge) {
    Response& last = responses_.back();
    if (last.syndrome == syndrome) {
      last.psn = psn;
      last.msn = msn_;
      return;
    }
    // Of two NAKs for the same packet the newer one counts, but for the wait that an RNR asks for.
    if (wire::syndrome::is_rnr(last.syndrome) && syndrome == wire::syndrome::kNakSequence) return;
    if (last.syndrome != wire::syndrome::kAck && last.psn == psn) {
      last.syndrome = syndrome;
      return;
    }
    // Behind a NAK that has not left, an ACK of what came before says nothing new.
    if (syndrome == wire::syndrome::kAck && nak_sent_) return;
  }
  Response& response = responses_.push_back();
  response = Response{};
  response.kind = Response::Kind::acknowledge;
  response.syndrome = syndrome;
  response.psn = psn;
  response.msn = msn_;
}

void RcResponder::queue_read(wire::Psn psn, const wire::Reth& reth, PdHandle pd, bool replay) {
  Response& response = responses_.push_back();
  response = Response{};
  response.kind = Response::Kind::read;
  response.syndrome = wire::syndrome::kAck;
  response.psn = psn;
  response.msn = msn_;
  response.replay = replay;
  response.pd = pd;
  response.value = reth.virtual_address;
  response.rkey = reth.rkey;
  response.length_bytes = reth.length_bytes;
  response.packets = packets_of(response.length_bytes, context_.attributes.path_mtu_bytes);
  ++rd_atomics_queued_;
  if (replay) send_before_later_ones();
}

void RcResponder::queue_atomic(wire::Psn psn, uint64_t original, bool replay) {
  Response& response = responses_.push_back();
  response = Response{};
  response.kind = Response::Kind::atomic;
  response.syndrome = wire::syndrome::kAck;
  response.psn = psn;
  response.msn = msn_;
  response.replay = replay;
  response.value = original;
  ++rd_atomics_queued_;
  if (replay) send_before_later_ones();
}

// The newest response passes those that go on with a later PSN: the requester waits for this one,
// would drop them, and may give up before a queue of long READs has been sent.
void RcResponder::send_before_later_ones() {
  const wire::Psn psn = responses_.back().psn;
  for (size_t i = responses_.size() - 1; i > 0; --i) {
    Response& before = responses_[i - 1];
    if (!(before.psn + before.sent).after(psn)) return;
    std::swap(before, responses_[i]);
  }
}

// Turns the queue once. ACKs that become neighbours are merged, so that the READs and atomics bound
// the queue.
template <class Unwanted>
void RcResponder::drop_responses_if(Unwanted unwanted) {
  size_t kept = 0;
  for (size_t left = responses_.size(); left > 0; --left) {
    const Response response = responses_.front();
    responses_.pop_front();
    if (unwanted(response)) {
      if (response.kind != Response::Kind::acknowledge) --rd_atomics_queued_;
    } else if (kept > 0 && response.is_ack() && responses_.back().is_ack()) {
      responses_.back() = response;
    } else {
      responses_.push_back() = response;
      ++kept;
    }
  }
}

// Takes back what was to be sent for `psn` and later ones.
void RcResponder::drop_responses_from(wire::Psn psn) {
  drop_responses_if(
      [&](const Response& response) { return (response.psn + response.packets).after(psn); });
}

// Whether the answer to `psn` is to be sent again. Not if its first sending is still to come: the
// request is then a copy that the network made. What is under way of the same READ is asked for
// again with it. When the queue is full, the requester has gone back to `psn` and will ask again
// for the other replays; if there is none, it has as many answers to come as it may, and this is an
// old copy.
bool RcResponder::make_room_for_replay(wire::Psn psn) {
  // Which packet of a response it is; -1 of ACKs and NAKs.
  const auto index_in = [psn](const Response& response) {
    return response.kind == Response::Kind::acknowledge ? -1 : psn.distance_from(response.psn);
  };
  for (size_t i = 0; i < responses_.size(); ++i) {
    const int32_t index = index_in(responses_[i]);
    if (index >= static_cast<int32_t>(responses_[i].sent) &&
        index < static_cast<int32_t>(responses_[i].packets))
      return false;
  }
  drop_responses_if([&](const Response& response) {
    const int32_t index = index_in(response);
    return index >= 0 && index < static_cast<int32_t>(response.sent);
  });
  if (!room_for_rd_atomic())
    drop_responses_if([](const Response& response) { return response.replay; });
  return room_for_rd_atomic();
}

// Whether one more READ or atomic may wait. A requester that has gone back and has got its answers
// after all may ask while replays wait. They are answers it no longer needs, the oldest first.
bool RcResponder::make_room_for_request() {
  if (room_for_rd_atomic()) return true;
  const Response* oldest = nullptr;
  for (size_t i = 0; i < responses_.size(); ++i) {
    const Response& response = responses_[i];
    if (response.replay && (oldest == nullptr || response.psn.before(oldest->psn)))
      oldest = &response;
  }
  if (oldest == nullptr) return false;
  const wire::Psn psn = oldest->psn;
  drop_responses_if(
      [&](const Response& response) { return response.replay && response.psn == psn; });
  return room_for_rd_atomic();
}

wire::Bth RcResponder::make_bth(Operation operation, wire::Psn psn) const {
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, operation);
  bth.pkey = context_.attributes.pkey;
  bth.destination_qp = context_.attributes.remote_qpn;
  bth.psn = psn;
  return bth;
}

Turn RcResponder::transmit(Burst& burst) {
  if (responses_.empty()) return Turn::idle;
  Response& response = responses_.front();
  Turn turn = Turn::idle;
  switch (response.kind) {
    case Response::Kind::acknowledge:
      turn = send_acknowledge(burst, response);
      break;
    case Response::Kind::atomic:
      turn = send_atomic(burst, response);
      break;
    case Response::Kind::read:
      return send_read(burst, response);
  }
  if (turn != Turn::sent) return turn;
  if (response.kind != Response::Kind::acknowledge) --rd_atomics_queued_;
  responses_.pop_front();
  return turn;
}

void RcResponder::acknowledge(Burst& burst) {
  while (!burst.full() && !responses_.empty() &&
         responses_.front().kind == Response::Kind::acknowledge) {
    if (send_acknowledge(burst, responses_.front()) != Turn::sent) return;
    responses_.pop_front();
  }
}

Turn RcResponder::send_acknowledge(Burst& burst, const Response& response) {
  wire::ExtendedHeaders ext;
  ext.aeth = {response.syndrome, response.msn};
  const bool added = burst.add(context_.qp, Side::responder, context_.attributes.path,
                               make_bth(Operation::acknowledge, response.psn), ext, 0) != nullptr;
  return added ? Turn::sent : Turn::no_buffer;
}

Turn RcResponder::send_atomic(Burst& burst, const Response& response) {
  wire::ExtendedHeaders ext;
  ext.aeth = {response.syndrome, response.msn};
  ext.atomic_original = response.value;
  const bool added =
      burst.add(context_.qp, Side::responder, context_.attributes.path,
                make_bth(Operation::atomic_acknowledge, response.psn), ext, 0) != nullptr;
  return added ? Turn::sent : Turn::no_buffer;
}

Turn RcResponder::send_read(Burst& burst, Response& response) {
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t offset = response.sent * mtu;
  const uint32_t bytes = std::min(mtu, response.length_bytes - offset);
  const wire::Psn psn = response.psn + response.sent;
  MemoryRange range;
  if (bytes > 0 &&
      !context_.memory.check_remote(response.pd, context_.qpn, response.rkey,
                                    response.value + offset, bytes, kRemoteRead, range)) {
    // The region has gone since the request was checked. What waits behind, the NAK, leaves now. Of
    // a replay that is no error: the requester may have its answer, and have told the program so.
    const bool replay = response.replay;
    --rd_atomics_queued_;
    responses_.pop_front();
    if (!replay) on_fetch_failed(psn);
    return transmit(burst);
  }
  const bool first = response.sent == 0;
  const bool last = response.sent + 1 == response.packets;
  const Operation operation = first && last ? Operation::read_response_only
                              : first       ? Operation::read_response_first
                              : last        ? Operation::read_response_last
                                            : Operation::read_response_middle;
  wire::ExtendedHeaders ext;
  ext.aeth = {response.syndrome, response.msn};
  std::byte* payload = burst.add(context_.qp, Side::responder, context_.attributes.path,
                                 make_bth(operation, psn), ext, bytes);
  if (payload == nullptr) return Turn::no_buffer;
  if (bytes > 0) context_.memory.fetch(range, payload, bytes, burst.fetch_tag());
  if (++response.sent == response.packets) {
    --rd_atomics_queued_;
    responses_.pop_front();
  }
  return Turn::sent;
}

}  // namespace rocemu::transport
