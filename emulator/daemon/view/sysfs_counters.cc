#include "emulator/daemon/view/sysfs_counters.h"

namespace rocemu::daemon {
namespace {

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
      {"port_rcv_errors", c.rx_malformed + c.rx_icrc_errors},
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
      {"sent_pkts", c.tx_frames},
      {"rcvd_pkts", c.rx_frames},
      {"sent_bytes", c.tx_payload_bytes},
      {"rcvd_bytes", c.rx_payload_bytes},
      {"duplicate_request", c.duplicate_requests},
      {"out_of_sequence", c.out_of_sequence},
      {"packet_seq_err", c.sequence_naks_received},
      {"sent_seq_err", c.sequence_naks_sent},
      {"rnr_nak_retry_err", c.rnr_naks_received},
      {"send_rnr_err", c.rnr_naks_sent},
      {"implied_nak_seq_err", c.implied_naks},
      {"local_ack_timeout_err", c.ack_timeouts},
      {"roce_adp_retrans", c.early_retransmissions},
      {"resp_errors", c.responder_errors},
      {"req_cqe_error", c.completions_with_error},
      {"rx_icrc_encapsulated", c.rx_icrc_errors},
      {"retransmitted_pkts", c.retransmitted_frames},
      {"qkey_violations", c.qkey_violations},
      {"rx_no_receive", c.rx_no_receive},
      {"rx_dropped", c.rx_dropped},
  };
}

}  // namespace rocemu::daemon
