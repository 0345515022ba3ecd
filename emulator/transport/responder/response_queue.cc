#include "emulator/transport/responder/response_queue.h"

#include <algorithm>
#include <utility>

#include "emulator/transport/qp/qp.h"
#include "emulator/transport/qp/rc_tables.h"
#include "emulator/wire/selective.h"

namespace rocemu::transport {

using wire::Operation;

void ResponseQueue::reset() {
  responses_.release();
  rd_atomics_ = 0;
  msn_ = 0;
}

void ResponseQueue::clear() {
  responses_.clear();
  rd_atomics_ = 0;
}

ResponseQueue::Response& ResponseQueue::add(Response::Kind kind, uint8_t syndrome, wire::Psn psn) {
  Response& response = responses_.push_back();
  response = Response{};
  response.kind = kind;
  response.syndrome = syndrome;
  response.psn = psn;
  response.msn = msn_;
  return response;
}

void ResponseQueue::add_acknowledge(uint8_t syndrome, wire::Psn psn, bool nak_outstanding) {
  if (!responses_.empty() && responses_.back().kind == Response::Kind::acknowledge) {
    Response& last = responses_.back();
    if (last.syndrome == syndrome) {
      last.psn = psn;
      last.msn = msn_;
      return;
    }
    // The newer of two NAKs for the same packet counts, but the wait that an RNR NAK asks for
    // stays.
    if (wire::syndrome::is_rnr(last.syndrome) && syndrome == wire::syndrome::kNakSequence) return;
    if (last.syndrome != wire::syndrome::kAck && last.psn == psn) {
      last.syndrome = syndrome;
      return;
    }
    if (syndrome == wire::syndrome::kAck && nak_outstanding) return;
  }
  add(Response::Kind::acknowledge, syndrome, psn);
}

void ResponseQueue::add_read(wire::Psn psn, const wire::Reth& reth, PdHandle pd,
                             const Landing& landing) {
  add_read_response(psn, reth, pd);
  responses_.back().landing = landing;
  add_rd_atomic(false);
}

void ResponseQueue::add_read_again(wire::Psn psn, const wire::Reth& reth, PdHandle pd) {
  add_read_response(psn, reth, pd);
  add_rd_atomic(true);
}

void ResponseQueue::add_read_response(wire::Psn psn, const wire::Reth& reth, PdHandle pd) {
  Response& response = add(Response::Kind::read, wire::syndrome::kAck, psn);
  response.pd = pd;
  response.value = reth.virtual_address;
  response.rkey = reth.rkey;
  response.length_bytes = reth.length_bytes;
  response.packets = packets_of(response.length_bytes, context_.attributes.path_mtu_bytes);
}

void ResponseQueue::add_atomic(wire::Psn psn, uint64_t original, bool replay) {
  add(Response::Kind::atomic, wire::syndrome::kAck, psn).value = original;
  add_rd_atomic(replay);
}

// Counts the newest response. A replay passes those that go on with a later PSN: the requester
// waits for this one, would drop them, and may give up before a queue of long READs has been sent.
void ResponseQueue::add_rd_atomic(bool replay) {
  ++rd_atomics_;
  if (!replay) return;
  responses_.back().replay = true;
  const wire::Psn psn = responses_.back().psn;
  for (size_t i = responses_.size() - 1; i > 0; --i) {
    Response& before = responses_[i - 1];
    if (!(before.psn + before.sent).after(psn)) return;
    std::swap(before, responses_[i]);
  }
}

void ResponseQueue::pop_front() {
  if (responses_.front().kind != Response::Kind::acknowledge) --rd_atomics_;
  responses_.pop_front();
}

bool ResponseQueue::take_back_nak(wire::Psn psn) {
  if (responses_.empty() || responses_.back().psn != psn ||
      responses_.back().syndrome == wire::syndrome::kAck)
    return false;
  responses_.pop_back();
  return true;
}

// Turns the queue once, and merges ACKs that become neighbours.
template <class Unwanted>
void ResponseQueue::drop_if(Unwanted unwanted) {
  size_t kept = 0;
  for (size_t left = responses_.size(); left > 0; --left) {
    const Response response = responses_.front();
    responses_.pop_front();
    if (unwanted(response)) {
      if (response.kind != Response::Kind::acknowledge) --rd_atomics_;
    } else if (kept > 0 && response.is_ack() && responses_.back().is_ack()) {
      responses_.back() = response;
    } else {
      responses_.push_back() = response;
      ++kept;
    }
  }
}

void ResponseQueue::drop_from(wire::Psn psn) {
  drop_if([&](const Response& response) { return (response.psn + response.packets).after(psn); });
}

bool ResponseQueue::final_nak_waits() {
  return !responses_.empty() && wire::syndrome::is_nak(responses_.back().syndrome) &&
         responses_.back().syndrome != wire::syndrome::kNakSequence;
}

bool ResponseQueue::has_room() const {
  return rd_atomics_ < context_.attributes.max_dest_rd_atomic;
}

// An answer is not sent again when its first sending is still to come: the request is then a copy
// that the network made. What is under way of the same READ is asked for again with it. When the
// queue is full, the requester has gone back to `psn` and will ask again for the other replays; if
// there is none, it has as many answers to come as it may, and this is an old copy.
bool ResponseQueue::make_room_for_replay(wire::Psn psn, uint32_t packets) {
  // The number of the packet in a READ or atomic response that `psn` is; -1 in ACKs and NAKs.
  const auto index_in = [psn](const Response& response) {
    return response.kind == Response::Kind::acknowledge ? -1 : psn.distance_from(response.psn);
  };
  for (size_t i = 0; i < responses_.size(); ++i) {
    const int32_t index = index_in(responses_[i]);
    if (index >= static_cast<int32_t>(responses_[i].sent) &&
        index < static_cast<int32_t>(responses_[i].packets))
      return false;
  }
  // With selective repeat a gap is asked for, and what is under way goes on behind it, unless all
  // of that is asked for, too.
  if (peer_is_selective_) {
    drop_if([&](const Response& response) {
      return response.kind == Response::Kind::read && !psn.after(response.psn + response.sent) &&
             !(response.psn + response.packets).after(psn + packets);
    });
    return rd_atomics_ < context_.attributes.max_dest_rd_atomic + kGapsAtOnce;
  }
  drop_if([&](const Response& response) {
    const int32_t index = index_in(response);
    return index >= 0 && index < static_cast<int32_t>(response.sent);
  });
  if (!has_room()) drop_if([](const Response& response) { return response.replay; });
  return has_room();
}

// A requester that has gone back and has got its answers after all may ask while replays wait. They
// are answers it no longer needs, the oldest first. With selective repeat there may be more of them
// than answers that it may wait for.
bool ResponseQueue::make_room_for_request() {
  while (!has_room()) {
    const Response* oldest = nullptr;
    for (size_t i = 0; i < responses_.size(); ++i) {
      const Response& response = responses_[i];
      if (response.replay && (oldest == nullptr || response.psn.before(oldest->psn)))
        oldest = &response;
    }
    if (oldest == nullptr) return false;
    const wire::Psn psn = oldest->psn;
    drop_if([&](const Response& response) { return response.replay && response.psn == psn; });
  }
  return true;
}

Turn ResponseQueue::transmit(Burst& burst, std::optional<wire::Psn>& unreadable) {
  while (!responses_.empty()) {
    Response& response = responses_.front();
    const Turn turn = response.kind == Response::Kind::read ? send_read(burst, response, unreadable)
                                                            : send_answer(burst, response);
    if (turn != Turn::later) return turn;
  }
  return Turn::idle;
}

void ResponseQueue::acknowledge(Burst& burst) {
  while (!burst.full() && !responses_.empty() &&
         responses_.front().kind == Response::Kind::acknowledge) {
    if (send_answer(burst, responses_.front()) != Turn::sent) return;
  }
}

wire::Bth ResponseQueue::make_bth(Operation operation, wire::Psn psn, uint8_t marks) const {
  wire::Bth bth;
  bth.opcode = wire::bth_opcode(context_.transport, operation);
  bth.mig_req = context_.migration.migrated();
  bth.pkey = context_.attributes.pkey;
  bth.destination_qp = context_.attributes.remote_qpn;
  bth.psn = psn;
  bth.reserved7 = context_.limits.offer() | marks;
  return bth;
}

wire::ExtendedHeaders ResponseQueue::headers_of(const Response& response) {
  wire::ExtendedHeaders ext;
  ext.aeth = {response.syndrome, response.msn};
  ext.atomic_original = response.value;
  return ext;
}

std::byte* ResponseQueue::add_frame(Burst& burst, Operation operation, wire::Psn psn,
                                    const Response& response, uint32_t payload_bytes,
                                    uint32_t telemetry_bytes, uint8_t marks) {
  const wire::Bth bth = make_bth(operation, psn, marks);
  const Path& path = context_.attributes.path;
  std::byte* const payload = burst.add(context_.qp, Side::responder, path, bth,
                                       headers_of(response), payload_bytes, telemetry_bytes);
  if (any_order_ && payload != nullptr && response.kind == Response::Kind::read) [[unlikely]]
    burst.spread_added(path);
  return payload;
}

// A NAK that has become untrue while it waited behind READ responses still acknowledges what it did
// then, and no more: the answers to what came since have not left.
Turn ResponseQueue::send_selective_nak(Burst& burst, const Response& response) {
  Response answer = response;
  std::array<std::byte, ArrivalsAhead::kBitmapBytes> taken;
  size_t bytes = 0;
  if (answer.psn == *expected_) {
    bytes = ahead_->write_bitmap(*expected_, taken);
    context_.tally.note(TraceEvent::sequence_nak_sent, answer.psn.value());
  } else {
    answer.syndrome = wire::syndrome::kAck;
    answer.psn = answer.psn - 1;
  }
  const bool selective = bytes > 0;
  TelemetryEcho* const echo = context_.telemetry_echo.get();
  const uint32_t telemetry_bytes = echo == nullptr ? 0 : echo->bytes();
  std::byte* const payload =
      add_frame(burst, selective ? Operation::read_response_only : Operation::acknowledge,
                answer.psn, answer, static_cast<uint32_t>(bytes), telemetry_bytes,
                selective ? wire::selective::kPlaced : uint8_t{0});
  if (payload == nullptr) return Turn::no_buffer;
  if (telemetry_bytes != 0) echo->take(burst.added_telemetry());
  std::copy_n(taken.begin(), bytes, payload);
  pop_front();
  return Turn::sent;
}

// Sends an ACK, a NAK or an atomic ACK.
Turn ResponseQueue::send_answer(Burst& burst, const Response& response) {
  if (ahead_ != nullptr && response.kind == Response::Kind::acknowledge &&
      response.syndrome == wire::syndrome::kNakSequence)
    return send_selective_nak(burst, response);
  const Operation operation = response.kind == Response::Kind::atomic
                                  ? Operation::atomic_acknowledge
                                  : Operation::acknowledge;
  TelemetryEcho* const echo = context_.telemetry_echo.get();
  const uint32_t telemetry_bytes = echo == nullptr ? 0 : echo->bytes();
  if (add_frame(burst, operation, response.psn, response, 0, telemetry_bytes) == nullptr)
    return Turn::no_buffer;
  if (telemetry_bytes != 0) echo->take(burst.added_telemetry());
  pop_front();
  return Turn::sent;
}

// The number of packets of a READ response that may leave as a run; 1: none.
uint32_t ResponseQueue::run_packets(const Burst& burst, const Response& response) const {
  const uint32_t rest = response.packets - response.sent;
  if (rest < 2 || !context_.may_run()) return 1;
  return std::min(rest, burst.run_packets(context_.attributes.path_mtu_bytes));
}

// Sends one packet of a READ response, or a run of them. `later`: nothing was sent, and the next
// answer may be.
Turn ResponseQueue::send_read(Burst& burst, Response& response,
                              std::optional<wire::Psn>& unreadable) {
  if (const uint32_t packets = run_packets(burst, response); packets > 1) {
    const Turn turn = send_responses(burst, response, packets, unreadable);
    if (turn != Turn::no_buffer) return turn;
  }
  return send_responses(burst, response, 1, unreadable);
}

// The landing of the response's data from `offset` on.
Landing ResponseQueue::landing_at(const Response& response, uint32_t offset) {
  Landing landing = response.landing;
  if (landing.at != nullptr) landing.at += offset;
  return landing;
}

Turn ResponseQueue::send_responses(Burst& burst, Response& response, uint32_t packets,
                                   std::optional<wire::Psn>& unreadable) {
  const uint32_t mtu = context_.attributes.path_mtu_bytes;
  const uint32_t offset = response.sent * mtu;
  const uint32_t bytes = std::min(packets * mtu, response.length_bytes - offset);
  const wire::Psn psn = response.psn + response.sent;
  MemoryRange range;
  if (bytes > 0 &&
      !context_.memory.check_remote(response.pd, context_.qpn, response.rkey,
                                    response.value + offset, bytes, kRemoteRead, range)) {
    // The region has gone since the request was checked. That is no error for a replay: the
    // requester may have its answer, and have told the program so.
    const bool replay = response.replay;
    pop_front();
    if (replay) return Turn::later;
    unreadable = psn;
    return Turn::idle;
  }
  const bool first = response.sent == 0;
  const bool last = response.sent + packets == response.packets;
  const Operation operation = first && last ? Operation::read_response_only
                              : first       ? Operation::read_response_first
                              : last        ? Operation::read_response_last
                                            : Operation::read_response_middle;
  std::byte* const payload =
      packets > 1
          ? burst.add_run(context_.qp, Side::responder, context_.attributes.path,
                          make_bth(operation, psn, 0), headers_of(response), bytes, packets, mtu)
          : add_frame(burst, operation, psn, response, bytes);
  if (payload == nullptr) return Turn::no_buffer;
  // The program's own memory is never lent: it may write there at any time, and READs that follow
  // each other see what they read in their order (IBTA vol 1, 10.8.3.3).
  if (bytes > 0) burst.fetch_read(range, landing_at(response, offset), payload, bytes);
  response.sent += packets;
  if (response.sent == response.packets) pop_front();
  return Turn::sent;
}

}  // namespace rocemu::transport
