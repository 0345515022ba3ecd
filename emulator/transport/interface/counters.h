// Counters hold how often each TraceEvent happened to a port or to a QP; of payload, the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "emulator/transport/interface/observer.h"

namespace rocemu::transport {

class Counters {
 public:
  uint64_t& operator[](TraceEvent event) { return counts_[static_cast<size_t>(event)]; }
  uint64_t operator[](TraceEvent event) const { return counts_[static_cast<size_t>(event)]; }

 private:
  std::array<uint64_t, kTraceEvents> counts_{};
};

// The names that status shows them under, in its order. They follow the hw_counters of Linux's
// drivers where those have one.
inline constexpr std::pair<TraceEvent, const char*> kCounterNames[] = {
    {TraceEvent::received, "rx_frames"},
    {TraceEvent::malformed, "rx_malformed"},
    {TraceEvent::icrc_error, "rx_icrc_errors"},
    {TraceEvent::no_qp, "rx_no_qp"},
    {TraceEvent::mismatched, "rx_mismatched"},
    {TraceEvent::qkey_violation, "qkey_violations"},
    {TraceEvent::no_receive, "rx_no_receive"},
    {TraceEvent::message_dropped, "rx_dropped"},
    {TraceEvent::sent, "tx_frames"},
    {TraceEvent::payload_sent, "tx_payload_bytes"},
    {TraceEvent::payload_received, "rx_payload_bytes"},
    {TraceEvent::retransmitted, "retransmitted_frames"},
    {TraceEvent::duplicate_request, "duplicate_requests"},
    {TraceEvent::out_of_sequence, "out_of_sequence"},
    {TraceEvent::placed_ahead, "placed_ahead"},
    {TraceEvent::sequence_nak_sent, "sequence_naks_sent"},
    {TraceEvent::sequence_nak_received, "sequence_naks_received"},
    {TraceEvent::rnr_nak_sent, "rnr_naks_sent"},
    {TraceEvent::rnr_nak_received, "rnr_naks_received"},
    {TraceEvent::implied_nak, "implied_naks"},
    {TraceEvent::ack_timeout, "ack_timeouts"},
    {TraceEvent::early_retransmission, "early_retransmissions"},
    {TraceEvent::stale_ack, "stale_acks"},
    {TraceEvent::responder_error, "responder_errors"},
    {TraceEvent::completion_with_error, "completions_with_error"},
    {TraceEvent::request_failed, "req_cqe_error"},
    {TraceEvent::request_flushed, "req_cqe_flush_error"},
    {TraceEvent::remote_access_error, "req_remote_access_errors"},
    {TraceEvent::remote_invalid_request, "req_remote_invalid_request"},
    {TraceEvent::retries_exceeded, "req_transport_retries_exceeded"},
    {TraceEvent::rnr_retries_exceeded, "req_rnr_retries_exceeded"},
    {TraceEvent::receive_failed, "resp_cqe_error"},
    {TraceEvent::receive_flushed, "resp_cqe_flush_error"},
    {TraceEvent::receive_length_error, "resp_local_length_error"},
    {TraceEvent::remote_access_refused, "resp_remote_access_errors"},
    {TraceEvent::write_executed, "rx_write_requests"},
    {TraceEvent::read_executed, "rx_read_requests"},
    {TraceEvent::atomic_executed, "rx_atomic_requests"},
    {TraceEvent::multicast_sent, "multicast_sent"},
    {TraceEvent::multicast_received, "multicast_received"},
    {TraceEvent::ecn_marked, "np_ecn_marked_roce_packets"},
    {TraceEvent::cnp_sent, "np_cnp_sent"},
    {TraceEvent::cnp_handled, "rp_cnp_handled"},
    {TraceEvent::cnp_ignored, "rp_cnp_ignored"},
};

}  // namespace rocemu::transport
