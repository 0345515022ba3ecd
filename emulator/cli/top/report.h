// A status report of a NIC (docs/control.md), as far as `rocemu top` uses it. Little is expected of
// the JSON, so that either side may be newer: what is missing or of another kind counts as zero,
// empty or not there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rocemu::cli::top {

using Json = nlohmann::ordered_json;

// Counters by their names, those alone that are not zero.
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
std::uint64_t count_of(const Counts& counts, std::string_view name);

struct QpReport {
  std::string device;
  std::uint32_t qpn = 0;
  std::string service;
  std::string state;
  std::uint32_t remote_qpn = 0;
  std::int64_t program = 0;  // process id; 0: none
  Counts counters;
  std::uint64_t requests = 0;
  std::uint64_t posted_requests = 0;
  std::uint64_t unacknowledged_packets = 0;
  std::uint32_t completed_requests = 0;  // modulo 2^32
  std::uint32_t answered_messages = 0;   // modulo 2^24
  std::optional<std::uint64_t> window_packets;
  std::string waits_for;  // empty: nothing
  std::optional<double> wait_left_us;
  std::optional<double> oldest_age_us;
  std::uint64_t retries = 0;
  std::uint64_t posted_receives = 0;
  std::uint64_t unread_completions = 0;
  // With congestion control.
  std::optional<double> allowed_mbps;
  std::optional<std::uint64_t> window_bytes;
  std::uint64_t cnps = 0;
};

struct DeviceReport {
  std::string name;
  std::string state;
  std::string algorithm;
  std::uint64_t qps = 0;  // of which the report may have some alone
  Counts counters;
  std::uint64_t tx_bytes = 0;  // whole frames
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_frames = 0;
  std::uint64_t rx_frames = 0;
  std::uint64_t paused_ns = 0;  // with a network of switches
};

struct Report {
  std::string name;
  std::string version;
  std::int64_t pid = 0;
  double uptime_s = 0;
  std::vector<DeviceReport> devices;
  std::vector<QpReport> qps;  // by device and number
};

Report read_report(const Json& status);

}  // namespace rocemu::cli::top
