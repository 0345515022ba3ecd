#include "emulator/cli/top/report.h"

#include <algorithm>
#include <string_view>

namespace rocemu::cli::top {
namespace {

const Json& member(const Json& object, const char* name) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() ? *found : kNothing;
}

std::uint64_t count(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::optional<std::uint64_t> maybe_count(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::optional<double> maybe_number(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

// Nothing in it moves the cursor of a terminal.
std::string text(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_string()) return "";
  std::string plain = value.get<std::string>();
  for (char& c : plain)
    if (c < ' ' || c > '~') c = '?';
  return plain;
}

Counts counts(const Json& object) {
  Counts all;
  if (!object.is_object()) return all;
  for (const auto& [name, value] : object.items())
    if (value.is_number_unsigned() && value != 0u) all.emplace_back(name, value);
  return all;
}

QpReport read_qp(const std::string& device, const Json& qp) {
  QpReport report;
  report.device = device;
  report.qpn = static_cast<std::uint32_t>(count(qp, "qpn"));
  report.service = text(qp, "service");
  report.state = text(qp, "state");
  report.remote_qpn = static_cast<std::uint32_t>(count(qp, "remote_qpn"));
  report.program = static_cast<std::int64_t>(count(qp, "program"));
  report.counters = counts(member(qp, "counters"));
  report.requests = count(qp, "requests");
  report.posted_requests = count(qp, "posted_requests");
  report.unacknowledged_packets = count(qp, "unacknowledged_packets");
  report.completed_requests = static_cast<std::uint32_t>(count(qp, "completed_requests"));
  report.answered_messages = static_cast<std::uint32_t>(count(qp, "answered_messages"));
  report.window_packets = maybe_count(qp, "window_packets");
  report.waits_for = text(qp, "waits_for");
  report.wait_left_us = maybe_number(qp, "wait_left_us");
  report.oldest_age_us = maybe_number(qp, "oldest_request_age_us");
  report.retries = count(qp, "retries");
  report.posted_receives = count(qp, "posted_receives");
  report.unread_completions = count(qp, "unread_completions");
  return report;
}

void read_flow(const Json& flow, std::vector<QpReport>& qps, const std::string& device) {
  const std::uint64_t qpn = count(flow, "qpn");
  for (QpReport& qp : qps) {
    if (qp.device != device || qp.qpn != qpn) continue;
    qp.allowed_mbps = maybe_number(flow, "rate_mbps");
    qp.window_bytes = maybe_count(flow, "window_bytes");
    qp.cnps = count(flow, "cnps");
  }
}

DeviceReport read_device(const Json& device) {
  DeviceReport report;
  report.name = text(device, "name");
  report.state = text(device, "port_state");
  report.algorithm = text(member(device, "congestion_control"), "algorithm");
  report.qps = count(member(device, "objects"), "qps");
  report.counters = counts(member(device, "counters"));
  const Json& port = member(device, "port");
  report.tx_bytes = count(port, "tx_bytes");
  report.rx_bytes = count(port, "rx_bytes");
  report.tx_frames = count(port, "tx_frames");
  report.rx_frames = count(port, "rx_frames");
  return report;
}

// A host's port in the network says whose it is.
void read_pauses(const Json& network, std::vector<DeviceReport>& devices) {
  for (const Json& port : network) {
    const std::string owner = text(port, "device");
    for (DeviceReport& device : devices)
      if (device.name == owner) device.paused_ns += count(port, "paused_ns");
  }
}

}  // namespace

std::uint64_t count_of(const Counts& counts, std::string_view name) {
  const auto found = std::ranges::find(counts, name, &Counts::value_type::first);
  return found == counts.end() ? 0 : found->second;
}

Report read_report(const Json& status) {
  Report report;
  report.name = text(status, "name");
  report.version = text(status, "version");
  report.pid = static_cast<std::int64_t>(count(status, "pid"));
  report.uptime_s = maybe_number(status, "uptime_s").value_or(0);
  for (const Json& device : member(status, "devices")) {
    if (!device.is_object()) continue;
    report.devices.push_back(read_device(device));
    const std::string& name = report.devices.back().name;
    std::vector<QpReport> qps;
    for (const Json& qp : member(device, "qps")) qps.push_back(read_qp(name, qp));
    for (const Json& flow : member(member(device, "congestion_control"), "qps"))
      read_flow(flow, qps, name);
    report.qps.insert(report.qps.end(), qps.begin(), qps.end());
  }
  read_pauses(member(status, "network"), report.devices);
  return report;
}

}  // namespace rocemu::cli::top
