// Every reason why a receiving QP does not take a packet, and what becomes of it: one row for each.
// The code that checks returns the row's Refusal; RcResponder::refuse, RcQp::on_packet and
// UnreliableQp::refuse do what the row says. Beside them only selective repeat draws a NAK of its
// own, for what it lacks (out_of_order.cc).
//
// The error classes are those of IBTA vol 1, 9.9.3. A program learns that its connection has ended
// by the status of the receive that was under way, if one was, or else by the event (C9-222.1.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "emulator/transport/interface/host_interface.h"
#include "emulator/transport/interface/work.h"
#include "emulator/transport/qp/qp_context.h"
#include "emulator/wire/headers.h"
#include "emulator/wire/opcode.h"

namespace rocemu::transport {

enum class Refusal : uint8_t {
  none,
  not_receiving,
  response_before_rts,
  wrong_transport,
  wrong_address,
  wrong_pkey,
  wrong_qkey,
  request_to_requester,
  datagram_too_long,
  no_place,
  repeated_psn,
  out_of_sequence_psn,
  receiver_not_ready,
  unknown_srq,
  other_srq,
  opcode_sequence,
  payload_length,
  wrong_place,
  access_not_enabled,
  bad_rkey,
  dma_length,
  message_too_long,
  atomic_length,
  misaligned_atomic,
  too_many_rd_atomics,
  receive_malformed,
  receive_too_short,
  receive_protection,
  bad_invalidate,
  remote_memory_lost,
  receive_memory_lost,
  completed_receive_memory_lost,
};

struct Reaction {
  enum class Kind : uint8_t {
    impossible,    // the service does not know the condition
    drop,          // the packet alone, in silence
    drop_message,  // in silence, with what is left of its message
    nak,           // the requester is told and tries again
    fail,          // the QP goes to ERROR, over RC and XRC behind a NAK
  };
  Kind kind = Kind::impossible;
  std::optional<TraceEvent> event = std::nullopt;
  std::optional<TraceEvent> second_event = std::nullopt;
};

struct RefusalRule {
  Refusal refusal;
  std::string_view name;
  std::string_view clause;  // the section of IBTA vol 1
  Reaction rc;              // over RC and XRC
  Reaction uc;
  Reaction ud;
  uint8_t syndrome = 0;  // the NAK's; an RNR NAK adds the QP's timer
  std::optional<QpEvent> event = std::nullopt;
  WcStatus receive_status = WcStatus::flush_error;

  constexpr const Reaction& reaction(wire::Transport transport) const {
    return transport == wire::Transport::ud ? ud : transport == wire::Transport::uc ? uc : rc;
  }
};

namespace refusal_table {

constexpr Reaction kNo{};
constexpr Reaction kFail{Reaction::Kind::fail, TraceEvent::responder_error};
constexpr Reaction kFailAccess{Reaction::Kind::fail, TraceEvent::responder_error,
                               TraceEvent::remote_access_refused};
constexpr Reaction drop(TraceEvent event) { return {Reaction::Kind::drop, event}; }
constexpr Reaction kMismatch = drop(TraceEvent::mismatched);
constexpr Reaction kNoQp = drop(TraceEvent::no_qp);
constexpr Reaction cut(TraceEvent event, std::optional<TraceEvent> second = std::nullopt) {
  return {Reaction::Kind::drop_message, event, second};
}
constexpr Reaction kCut = cut(TraceEvent::message_dropped);
constexpr Reaction nak(TraceEvent event) { return {Reaction::Kind::nak, event}; }

using enum Refusal;
using enum WcStatus;
using enum QpEvent;
using namespace wire::syndrome;

// clang-format off
inline constexpr RefusalRule kRules[] = {
    {none, "none", "", kNo, kNo, kNo},

    // Before the packet is looked at as a request.
    {not_receiving, "not_receiving", "10.3.1", kNoQp, kNoQp, kNoQp},
    {response_before_rts, "response_before_rts", "10.3.1", kNoQp, kNo, kNo},
    {wrong_transport, "wrong_transport", "9.6.1", kMismatch, kMismatch, kMismatch},
    {wrong_address, "wrong_address", "9.6.1", kMismatch, kMismatch, kMismatch},
    {wrong_pkey, "wrong_pkey", "10.9.3", kMismatch, kMismatch, kMismatch},
    {wrong_qkey, "wrong_qkey", "10.2.5", kNo, kNo, drop(TraceEvent::qkey_violation)},
    {request_to_requester, "request_to_requester", "annex A14", kMismatch, kNo, kNo},
    {datagram_too_long, "datagram_too_long", "9.8.3.2", kNo, kNo, kMismatch},
    {no_place, "no_place", "docs/loss-recovery.md", kMismatch, kNo, kNo},

    // The PSN. RC answers a repeated one (RcResponder::on_duplicate); the first one ahead draws a
    // NAK, later ones as NakState says. UC takes a FIRST or ONLY behind a gap all the same.
    {repeated_psn, "repeated_psn", "9.8.2.2", kNo, drop(TraceEvent::duplicate_request), kNo},
    {out_of_sequence_psn, "out_of_sequence_psn", "9.7.4.1, class B; UC: 9.8.2.2",
     nak(TraceEvent::out_of_sequence), cut(TraceEvent::out_of_sequence), kNo, kNakSequence},

    // The expected request, or what UC and UD take for one.
    {receiver_not_ready, "receiver_not_ready", "9.7.5.2.8, class B", nak(TraceEvent::rnr_nak_sent),
     cut(TraceEvent::no_receive, TraceEvent::message_dropped), drop(TraceEvent::no_receive), kRnr},
    {unknown_srq, "unknown_srq", "annex A14", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {other_srq, "other_srq", "annex A14", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {opcode_sequence, "opcode_sequence", "9.7.4.1.4, class C; UC: 9.8.2.2.5", kFail, kCut, kNo,
     kNakInvalidRequest, request_error},
    {payload_length, "payload_length", "9.7.4.1.6, class C; UC: 9.8.2.2.5", kFail, kCut, kNo,
     kNakInvalidRequest, request_error},
    {wrong_place, "wrong_place", "docs/loss-recovery.md", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {access_not_enabled, "access_not_enabled", "9.9.3, class C", kFail, kCut, kNo,
     kNakInvalidRequest, request_error},
    {bad_rkey, "bad_rkey", "9.7.4.1.5, class C; of WRITE with immediate: 11.6.2",
     kFailAccess, kCut, kNo, kNakRemoteAccess, access_error, local_access_error},
    {dma_length, "dma_length", "9.7.4.1.6, class C", kFail, kCut, kNo,
     kNakInvalidRequest, request_error},
    {message_too_long, "message_too_long", "C9-94, class C", kFail, kCut, kNo,
     kNakInvalidRequest, request_error},
    {atomic_length, "atomic_length", "annex A19", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {misaligned_atomic, "misaligned_atomic", "9.4.5, annex A19", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {too_many_rd_atomics, "too_many_rd_atomics", "9.9.3, class C", kFail, kNo, kNo,
     kNakInvalidRequest, request_error},
    {receive_malformed, "receive_malformed", "9.9.3, class A", kFail, kFail, kFail,
     kNakRemoteOperation, fatal, local_qp_operation_error},
    {receive_too_short, "receive_too_short", "C9-76", kFail, kCut, kCut,
     kNakInvalidRequest, request_error, local_length_error},
    {receive_protection, "receive_protection", "9.9.3, class A", kFail, kFail, kFail,
     kNakRemoteOperation, fatal, local_protection_error},
    {bad_invalidate, "bad_invalidate", "9.9.3, class J", kFailAccess, kNo, kNo,
     kNakRemoteAccess, access_error, remote_invalid_request_error},

    // After the checks: the memory has gone when it is moved. The receive under way is another one
    // when the failed one has been completed already.
    {remote_memory_lost, "remote_memory_lost", "9.7.4.1.5, class C", kFailAccess, kFailAccess, kNo,
     kNakRemoteAccess, access_error},
    {receive_memory_lost, "receive_memory_lost", "9.9.3, class A", kFail, kFail, kFail,
     kNakRemoteOperation, fatal, local_protection_error},
    {completed_receive_memory_lost, "completed_receive_memory_lost", "9.9.3, class A",
     kFail, kFail, kFail, kNakRemoteOperation},
};
// clang-format on

}  // namespace refusal_table

inline constexpr std::span<const RefusalRule> kRefusalRules{refusal_table::kRules};

constexpr const RefusalRule& rule_of(Refusal refusal) {
  return kRefusalRules[static_cast<size_t>(refusal)];
}

// Tells the counters and the observer that `rule` refuses the packet with `psn`.
inline void note_refusal(QpContext& context, const RefusalRule& rule, wire::Psn psn) {
  context.tally.note_refusal(rule.refusal, psn.value());
  const Reaction& reaction = rule.reaction(context.transport);
  if (reaction.event) context.tally.note(*reaction.event, psn.value());
  if (reaction.second_event) context.tally.note(*reaction.second_event, psn.value());
}

}  // namespace rocemu::transport
