#include "emulator/daemon/view/sysfs_counters.h"

namespace rocemu::daemon {
namespace {

using transport::TraceEvent;

constexpr uint64_t kWordBytes = 4;

}  // namespace

NamedCounters port_counters(const transport::Counters& c, const dpdk_io::PortStats& port) {
  using dpdk_io::DropReason;
  return {
      {"port_rcv_data", port.rx_bytes / kWordBytes},
      {"port_rcv_packets", port.rx_frames},
      {"unicast_rcv_packets", port.rx_frames},
      {"port_xmit_data", port.tx_bytes / kWordBytes},
      {"port_xmit_packets", port.tx_frames},
      {"unicast_xmit_packets", port.tx_frames},
      {"port_rcv_errors", c[TraceEvent::malformed] + c[TraceEvent::icrc_error]},
      {"port_xmit_discards",
       port.dropped(DropReason::unknown_destination) + port.dropped(DropReason::refused_by_kernel)},
      {"symbol_error", 0},
      {"link_error_recovery", 0},
      {"link_downed", 0},
      {"local_link_integrity_errors", 0},
      {"excessive_buffer_overrun_errors", port.dropped(DropReason::queue_full)},
      {"VL15_dropped", 0},
      {"port_xmit_wait", 0},
  };
}

NamedCounters hw_counters(const transport::Counters& c) {
  return {
      {"sent_pkts", c[TraceEvent::sent]},
      {"rcvd_pkts", c[TraceEvent::received]},
      {"sent_bytes", c[TraceEvent::payload_sent]},
      {"rcvd_bytes", c[TraceEvent::payload_received]},
      {"duplicate_request", c[TraceEvent::duplicate_request]},
      {"out_of_sequence", c[TraceEvent::out_of_sequence]},
      {"packet_seq_err", c[TraceEvent::sequence_nak_received]},
      {"sent_seq_err", c[TraceEvent::sequence_nak_sent]},
      {"rnr_nak_retry_err", c[TraceEvent::rnr_nak_received]},
      {"send_rnr_err", c[TraceEvent::rnr_nak_sent]},
      {"implied_nak_seq_err", c[TraceEvent::implied_nak]},
      {"local_ack_timeout_err", c[TraceEvent::ack_timeout]},
      {"roce_adp_retrans", c[TraceEvent::early_retransmission]},
      {"resp_errors", c[TraceEvent::responder_error]},
      {"req_cqe_error", c[TraceEvent::completion_with_error]},
      {"np_ecn_marked_roce_packets", c[TraceEvent::ecn_marked]},
      {"np_cnp_sent", c[TraceEvent::cnp_sent]},
      {"rp_cnp_handled", c[TraceEvent::cnp_handled]},
      {"rp_cnp_ignored", c[TraceEvent::cnp_ignored]},
      {"rx_icrc_encapsulated", c[TraceEvent::icrc_error]},
      {"retransmitted_pkts", c[TraceEvent::retransmitted]},
      {"qkey_violations", c[TraceEvent::qkey_violation]},
      {"rx_no_receive", c[TraceEvent::no_receive]},
      {"rx_dropped", c[TraceEvent::message_dropped]},
  };
}

}  // namespace rocemu::daemon
