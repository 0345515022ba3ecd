// What an endpoint counts. Names follow the hw_counters of Linux's drivers where they have one.
#pragma once

#include <cstdint>

namespace rocemu::transport {

struct Counters {
  uint64_t rx_frames = 0;
  uint64_t rx_malformed = 0;  // not a RoCEv2 frame, or a header that contradicts itself
  uint64_t rx_icrc_errors = 0;
  uint64_t rx_no_qp = 0;         // unknown QPN, or a QP that does not receive
  uint64_t rx_mismatched = 0;    // transport, address or P_Key other than the QP's
  uint64_t qkey_violations = 0;  // UD: dropped for a Q_Key other than the QP's
  uint64_t rx_no_receive = 0;    // UD and UC: messages dropped for want of a receive
  uint64_t rx_dropped = 0;       // UD and UC: cut short, too long, or not allowed
  uint64_t tx_frames = 0;
  uint64_t tx_payload_bytes = 0;
  uint64_t rx_payload_bytes = 0;
  uint64_t retransmitted_frames = 0;
  uint64_t duplicate_requests = 0;
  uint64_t out_of_sequence = 0;
  uint64_t sequence_naks_sent = 0;
  uint64_t sequence_naks_received = 0;
  uint64_t rnr_naks_sent = 0;
  uint64_t rnr_naks_received = 0;
  uint64_t implied_naks = 0;
  uint64_t ack_timeouts = 0;
  uint64_t early_retransmissions = 0;  // before the ACK timeout, by the measured round trip
  uint64_t stale_acks = 0;
  uint64_t responder_errors = 0;  // requests that ended a connection
  uint64_t completions_with_error = 0;
};

}  // namespace rocemu::transport
