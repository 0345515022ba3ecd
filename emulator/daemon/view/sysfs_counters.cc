#include "emulator/daemon/view/sysfs_counters.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

using transport::TraceEvent;

constexpr uint64_t kWordBytes = 4;

// The port and the transport count a frame at different moments.
uint64_t less(uint64_t all, uint64_t part) { return all - std::min(all, part); }

}  // namespace

NamedCounters port_counters(const PortCounts& counts) {
  using dpdk_io::DropReason;
  const transport::Counters& c = counts.transport;
  const dpdk_io::PortStats& port = counts.port;
  const uint64_t multicast_received = c[TraceEvent::multicast_received];
  const uint64_t multicast_sent = c[TraceEvent::multicast_sent];
  return {
      {"port_rcv_data", port.rx_bytes / kWordBytes},
      {"port_rcv_packets", port.rx_frames},
      {"unicast_rcv_packets", less(port.rx_frames, multicast_received)},
      {"multicast_rcv_packets", multicast_received},
      {"port_xmit_data", port.tx_bytes / kWordBytes},
      {"port_xmit_packets", port.tx_frames},
      {"unicast_xmit_packets", less(port.tx_frames, multicast_sent)},
      {"multicast_xmit_packets", multicast_sent},
      {"port_rcv_errors", c[TraceEvent::malformed] + c[TraceEvent::icrc_error]},
      {"port_rcv_discards", port.dropped(DropReason::queue_full)},
      {"port_xmit_discards",
       port.dropped(DropReason::unknown_destination) + port.dropped(DropReason::refused_by_kernel)},
      {"excessive_buffer_overrun_errors", port.dropped(DropReason::queue_full)},
      {"link_downed", counts.link_downs},
      // These tell of what an Ethernet port without switches of InfiniBand has not.
      {"symbol_error", 0},
      {"link_error_recovery", 0},
      {"local_link_integrity_errors", 0},
      {"port_rcv_remote_physical_errors", 0},
      {"port_rcv_switch_relay_errors", 0},
      {"port_rcv_constraint_errors", 0},
      {"port_xmit_constraint_errors", 0},
      {"port_xmit_wait", 0},
      {"VL15_dropped", 0},
  };
}

NamedCounters hw_counters(const transport::Counters& c) {
  return {
      {"lifespan", kCounterLifespanMs},
      {"sent_pkts", c[TraceEvent::sent]},
      {"rcvd_pkts", c[TraceEvent::received]},
      {"sent_bytes", c[TraceEvent::payload_sent]},
      {"rcvd_bytes", c[TraceEvent::payload_received]},
      {"rx_write_requests", c[TraceEvent::write_executed]},
      {"rx_read_requests", c[TraceEvent::read_executed]},
      {"rx_atomic_requests", c[TraceEvent::atomic_executed]},
      {"duplicate_request", c[TraceEvent::duplicate_request]},
      {"out_of_sequence", c[TraceEvent::out_of_sequence]},
      {"out_of_buffer", c[TraceEvent::rnr_nak_sent] + c[TraceEvent::no_receive]},
      {"packet_seq_err", c[TraceEvent::sequence_nak_received]},
      {"sent_seq_err", c[TraceEvent::sequence_nak_sent]},
      {"rnr_nak_retry_err", c[TraceEvent::rnr_nak_received]},
      {"send_rnr_err", c[TraceEvent::rnr_nak_sent]},
      {"implied_nak_seq_err", c[TraceEvent::implied_nak]},
      {"local_ack_timeout_err", c[TraceEvent::ack_timeout]},
      // Each time the adaptive timeout is over, one packet is sent again.
      {"roce_adp_retrans", c[TraceEvent::early_retransmission]},
      {"roce_adp_retrans_to", c[TraceEvent::early_retransmission]},
      {"retransmitted_pkts", c[TraceEvent::retransmitted]},
      {"req_cqe_error", c[TraceEvent::request_failed]},
      {"req_cqe_flush_error", c[TraceEvent::request_flushed]},
      {"req_remote_access_errors", c[TraceEvent::remote_access_error]},
      {"req_remote_invalid_request", c[TraceEvent::remote_invalid_request]},
      {"req_transport_retries_exceeded", c[TraceEvent::retries_exceeded]},
      {"req_rnr_retries_exceeded", c[TraceEvent::rnr_retries_exceeded]},
      {"resp_cqe_error", c[TraceEvent::receive_failed]},
      {"resp_cqe_flush_error", c[TraceEvent::receive_flushed]},
      {"resp_local_length_error", c[TraceEvent::receive_length_error]},
      {"resp_remote_access_errors", c[TraceEvent::remote_access_refused]},
      {"resp_errors", c[TraceEvent::responder_error]},
      {"np_ecn_marked_roce_packets", c[TraceEvent::ecn_marked]},
      {"np_cnp_sent", c[TraceEvent::cnp_sent]},
      {"rp_cnp_handled", c[TraceEvent::cnp_handled]},
      {"rp_cnp_ignored", c[TraceEvent::cnp_ignored]},
      {"rx_icrc_encapsulated", c[TraceEvent::icrc_error]},
      {"qkey_violations", c[TraceEvent::qkey_violation]},
      {"rx_no_receive", c[TraceEvent::no_receive]},
      {"rx_dropped", c[TraceEvent::message_dropped]},
      // This NIC has neither slow restart nor dynamically connected transport.
      {"roce_slow_restart", 0},
      {"roce_slow_restart_cnps", 0},
      {"roce_slow_restart_trans", 0},
      {"rx_dct_connect", 0},
  };
}

}  // namespace rocemu::daemon
