// TraceEvent says what can happen to a frame or a QP, once: the counters of ports and QPs are made
// from it (counters.h), and an Observer is told of it. A tracer, a checker or an experiment plugs
// in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/wire/types.h"

namespace rocemu::verbs {
enum class QpState : uint8_t;
}

namespace rocemu::wire {
struct Packet;
}

namespace rocemu::transport {

struct Completion;
struct QpAttributes;
struct ReceiveWork;
struct SendWork;
enum class Service : uint8_t;
enum class WaitReason : uint8_t;

// The comment says what the event's value is: where it says nothing, a PSN, or 0 for a drop of UC
// or UD.
enum class TraceEvent : uint8_t {
  // Traffic of a QP. A multicast frame is delivered to each QP of its group.
  delivered,
  sent,
  payload_received,  // bytes
  payload_sent,      // bytes

  // A packet or, of UD and UC, a message is dropped, for this reason.
  no_qp,            // unknown QPN, or a QP that does not receive
  mismatched,       // transport, address or P_Key other than the QP's
  qkey_violation,   // UD: a Q_Key other than the QP's
  no_receive,       // UD and UC: no receive is posted
  message_dropped,  // UD and UC: cut short, too long, or not allowed

  retransmitted,
  duplicate_request,
  out_of_sequence,
  placed_ahead,  // taken out of order: selective repeat
  sequence_nak_sent,
  sequence_nak_received,
  rnr_nak_sent,
  rnr_nak_received,
  implied_nak,
  ack_timeout,
  early_retransmission,  // a probe: before the ACK timeout, by the measured round trip
  stale_ack,
  responder_error,        // a request or a receive took the QP to ERROR
  completion_with_error,  // WcStatus
  // Completions with an error as they are shown, by side and cause; the value is the WcStatus.
  request_failed,  // any of the five below, and others
  request_flushed,
  remote_access_error,
  remote_invalid_request,
  retries_exceeded,
  rnr_retries_exceeded,
  receive_failed,  // either of the two below, and others
  receive_flushed,
  receive_length_error,

  remote_access_refused,  // a request of the peer, for its key or what that no longer names
  // Requests of the peer that were executed: a message counts once, with its last packet.
  write_executed,
  read_executed,
  atomic_executed,
  multicast_sent,

  ecn_marked,     // a packet with CE has come
  cnp_sent,       // 0
  cnp_handled,    // the rate from now on in kbit/s
  cnp_ignored,    // a CNP for nobody's flow, or no algorithm listens; 0
  state_changed,  // QpState, the new one

  // Events of the port alone: these frames have no QP.
  received,    // any frame, before it is looked at; 0
  malformed,   // not a RoCEv2 frame, or a header that contradicts itself; 0
  icrc_error,  // the PSN cannot be trusted; 0
  multicast_received,
};

inline constexpr size_t kTraceEvents = static_cast<size_t>(TraceEvent::multicast_received) + 1;

// Refusal is the reason why a packet was not taken: a row of responder/refusals.h.
enum class Refusal : uint8_t;

// A frame that leaves, as it is handed over; valid for the length of a call.
struct SentFrame {
  std::span<const std::byte> bytes;  // from the Ethernet header on
  uint32_t l3_offset_bytes = 0;      // 0: all of it comes from the program
  uint32_t payload_bytes = 0;
  bool is_response = false;  // of the QP's responder
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Called from within the endpoint's calls, of which it must make none, in the order in which
  // things happen. `qpn` is 0 for the port's own events.
  virtual void on_event(wire::Qpn qpn, TraceEvent event, uint32_t value) noexcept = 0;
  // Names the rule by which a QP refuses the packet with `psn`, before the events that come of it.
  virtual void on_refusal(wire::Qpn, Refusal, uint32_t /*psn*/) noexcept {}

  // What follows tells more than can be counted. A QP is about to look at a packet: before the
  // event `delivered`.
  virtual void on_packet(wire::Qpn, const wire::Packet&) noexcept {}
  // A frame is handed over: before the event `sent`.
  virtual void on_frame_sent(wire::Qpn, const SentFrame&) noexcept {}
  // A request was taken off a QP's queue.
  virtual void on_send_taken(wire::Qpn, const SendWork&) noexcept {}
  virtual void on_receive_taken(wire::Qpn, const ReceiveWork&) noexcept {}
  // What the packet with that PSN brought has been moved to where it belongs.
  virtual void on_placed(wire::Qpn, wire::Psn) noexcept {}
  // A request is over, after the move of its data. `announced`: the CQ gets it now.
  virtual void on_completion(const Completion&, bool /*announced*/) noexcept {}
  // A QP has had its turn at sending, and what it has sent has left: what it waits for now, as far
  // as the transport knows. Finding that out costs something, so those are told who say so.
  virtual bool wants_waits() const noexcept { return false; }
  virtual void on_turn_over(wire::Qpn, WaitReason) noexcept {}
  // A fault that somebody has asked for takes a frame: one that has left, or one that has come and
  // will not be looked at.
  virtual void on_fault_loss(std::span<const std::byte> /*frame*/, bool /*arrives*/) noexcept {}
  // A QP was made, goes away, or has another state, which is told before the event `state_changed`.
  virtual void on_created(wire::Qpn, Service) noexcept {}
  virtual void on_destroyed(wire::Qpn) noexcept {}
  virtual void on_state(wire::Qpn, verbs::QpState, const QpAttributes&) noexcept {}
};

}  // namespace rocemu::transport
