// Status reports of a NIC with two devices, as `rocemu top` gets them.
#pragma once

#include <string>

#include "emulator/cli/top/model.h"

namespace rocemu::cli::top {

// A report at so many seconds: QP 17 of rocemu0 sends to QP 18 of rocemu1, and QP 19 waits.
inline Json status_at(double uptime_s, std::uint64_t tx_bytes, std::uint32_t completed,
                      std::uint32_t answered, std::uint64_t paused_ns = 0) {
  Json status = Json::parse(R"({
    "name": "lab", "version": "1.2.3", "pid": 99,
    "devices": [
      {"name": "rocemu0", "port_state": "ACTIVE", "objects": {"qps": 3},
       "counters": {"retransmitted_frames": 10}, "port": {"rx_bytes": 1, "tx_frames": 1},
       "congestion_control": {"algorithm": "dcqcn", "qps": [
         {"qpn": 17, "rate_mbps": 25000.5, "window_bytes": null, "cnps": 4}]},
       "qps": [
         {"qpn": 17, "service": "RC", "state": "RTS", "remote_qpn": 18, "program": 500,
          "requests": 4, "unacknowledged_packets": 256, "counters": {"retransmitted_frames": 10},
          "waits_for": "window", "wait_left_us": null, "oldest_request_age_us": 120.5,
          "posted_requests": 60, "answered_messages": 0, "window_packets": 256, "retries": 0,
          "posted_receives": 7, "unread_completions": 3},
         {"qpn": 19, "service": "UD", "state": "RTS", "program": 501, "counters": {},
          "waits_for": null}]},
      {"name": "rocemu1", "port_state": "DOWN", "objects": {"qps": 1}, "port": {"tx_bytes": 0},
       "qps": [
         {"qpn": 18, "service": "RC", "state": "RTS", "remote_qpn": 17, "program": 501,
          "counters": {}, "waits_for": "receives"}]}],
    "network": [{"port": "h0 to s0", "device": "rocemu0"}]})");
  status["uptime_s"] = uptime_s;
  Json& here = status["devices"][0];
  Json& there = status["devices"][1]["qps"][0];
  here["port"]["tx_bytes"] = tx_bytes * 2;
  here["qps"][0]["counters"]["tx_payload_bytes"] = tx_bytes;
  here["qps"][0]["completed_requests"] = completed;
  there["counters"]["rx_payload_bytes"] = tx_bytes;
  there["counters"]["rnr_naks_sent"] = std::uint64_t{completed / 10};
  there["answered_messages"] = answered;
  status["network"][0]["paused_ns"] = paused_ns;
  return status;
}

inline std::string name_of(std::int64_t pid) { return pid == 500 ? "ib_write_bw" : "server"; }

// Two seconds lie between: 125 MB, 1000 messages.
inline View example_view() {
  const Report before = read_report(status_at(10, 1'000'000, 100, 0xffff00));
  const Report now = read_report(status_at(12, 126'000'000, 1100, (0xffff00 + 1000) & 0xffffff));
  return make_view(&before, now, name_of);
}

}  // namespace rocemu::cli::top
