#include "emulator/daemon/view/status.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/view/cm_status.h"
#include "emulator/daemon/view/qp_text.h"

namespace rocemu::daemon {
namespace {

using nlohmann::ordered_json;

ordered_json describe(const device::ObjectCounts& objects) {
  return {{"contexts", objects.contexts}, {"pds", objects.pds},
          {"mrs", objects.mrs},           {"mapped_mrs", objects.mapped_mrs},
          {"cqs", objects.cqs},           {"qps", objects.qps},
          {"channels", objects.channels}, {"ahs", objects.ahs},
          {"srqs", objects.srqs},         {"xrcds", objects.xrcds}};
}

ordered_json describe(const transport::Counters& counters) {
  ordered_json shown;
  for (const auto& [event, name] : transport::kCounterNames) shown[name] = counters[event];
  return shown;
}

ordered_json describe(const dpdk_io::PortStats& port) {
  using dpdk_io::DropReason;
  return {{"rx_frames", port.rx_frames},
          {"rx_bytes", port.rx_bytes},
          {"tx_frames", port.tx_frames},
          {"tx_bytes", port.tx_bytes},
          {"dropped_unknown_destination", port.dropped(DropReason::unknown_destination)},
          {"dropped_queue_full", port.dropped(DropReason::queue_full)},
          {"dropped_malformed", port.dropped(DropReason::malformed)},
          {"dropped_impairment_loss", port.dropped(DropReason::impairment_loss)},
          {"dropped_impairment_queue", port.dropped(DropReason::impairment_queue)},
          {"dropped_impairment_outage", port.dropped(DropReason::impairment_outage)},
          {"dropped_refused_by_kernel", port.dropped(DropReason::refused_by_kernel)},
          {"dropped_network", port.dropped(DropReason::network)}};
}

// A link without impairments is null.
ordered_json describe(const LinkPair& links) {
  ordered_json described;
  for (const impairment::Direction direction : impairment::kDirections) {
    const impairment::Spec& spec = links.of(direction).spec;
    ordered_json& text = described[std::string(to_text(direction))];
    if (spec != impairment::Spec{}) text = to_text(spec);
  }
  return described;
}

// Shows those priorities and losses alone that there were.
ordered_json describe(const network::PortReport& port) {
  const network::PortCounters& counters = port.counters;
  ordered_json lost = ordered_json::object();
  for (size_t i = 0; i < network::kNetworkLosses; ++i)
    if (counters.lost[i] != 0) lost[std::string(network::kNetworkLossNames[i])] = counters.lost[i];
  ordered_json queue_max = ordered_json::object();
  for (unsigned i = 0; i < network::kPriorities; ++i)
    if (counters.queue_max_bytes[i] != 0)
      queue_max[std::to_string(i)] = counters.queue_max_bytes[i];
  ordered_json described = {{"port", port.node + " to " + port.far_node}};
  if (!port.device.empty()) described["device"] = port.device;
  described.update({{"up", port.up},
                    {"frames", counters.frames},
                    {"bytes", counters.bytes},
                    {"queue_bytes", port.queue_bytes},
                    {"queue_max_bytes", queue_max},
                    {"marked", counters.marked},
                    {"trimmed", counters.trimmed},
                    {"pauses_sent", counters.pauses_sent},
                    {"resumes_sent", counters.resumes_sent},
                    {"pauses_received", counters.pauses_received},
                    {"paused_ns", port.paused_ns},
                    {"lost", lost}});
  return described;
}

// Ports that nothing has happened at are left out.
ordered_json describe(const std::vector<network::PortReport>& network) {
  ordered_json ports = ordered_json::array();
  for (const network::PortReport& port : network) {
    bool any = port.counters.frames != 0 || port.counters.pauses_sent != 0 ||
               port.counters.pauses_received != 0 || !port.up;
    for (const uint64_t lost : port.counters.lost) any |= lost != 0;
    if (any) ports.push_back(describe(port));
  }
  return ports;
}

ordered_json describe(const std::vector<congestion::NamedValue>& values) {
  ordered_json shown = ordered_json::object();
  for (const congestion::NamedValue& value : values) shown[value.name] = value.value;
  return shown;
}

// Rates in Mbit/s, as in the parameters. A window that nothing limits is null.
ordered_json describe(const transport::FlowReport& flow) {
  constexpr double kBitsPerMbit = 1e6;
  ordered_json shown = {{"qpn", flow.qpn.value},
                        {"remote_qpn", flow.remote_qpn.value},
                        {"rate_mbps", static_cast<double>(flow.rate_bps) / kBitsPerMbit},
                        {"window_bytes", nullptr},
                        {"cnps", flow.cnps}};
  if (flow.window_bytes != congestion::kUnlimited) shown["window_bytes"] = flow.window_bytes;
  // A library's values have names of its own, which take the place of none of these.
  for (const congestion::NamedValue& value : flow.values) shown.emplace(value.name, value.value);
  return shown;
}

ordered_json describe(const congestion::Settings& settings,
                      const std::vector<transport::FlowReport>& flows) {
  ordered_json shown = {{"algorithm", settings.name()}};
  if (!settings.preset.empty()) shown["preset"] = settings.preset;
  shown["parameters"] = describe(settings.parameters());
  shown["qps"] = ordered_json::array();
  for (const transport::FlowReport& flow : flows) shown["qps"].push_back(describe(flow));
  return shown;
}

// Shows the recovery that each QP has with its peer.
ordered_json describe(const std::vector<transport::RecoveryReport>& recoveries) {
  ordered_json shown = ordered_json::array();
  for (const transport::RecoveryReport& report : recoveries)
    shown.push_back(
        {{"qpn", report.qpn.value},
         {"recovery", report.recovery == transport::Recovery::selective_repeat ? "selective-repeat"
                                                                               : "go-back-n"}});
  return shown;
}

// Shows how often each chosen behaviour was seen; some are not done at a moment, and stay 0.
ordered_json describe(const shake::Settings& settings, const shake::Counts& counts) {
  ordered_json shown = ordered_json::object();
  for (size_t i = 0; i < shake::kBehaviours; ++i)
    if (settings.chosen[i]) shown[std::string(shake::kBehaviourNames[i])] = counts[i];
  return shown;
}

// Describes what a QP has under way and why it does not go on. A time that there is none of is
// null.
ordered_json describe(const transport::WaitFacts& wait, transport::WaitReason reason) {
  const auto in_us = [](TimeNs time_ns) {
    return time_ns == 0 ? ordered_json(nullptr) : ordered_json(static_cast<double>(time_ns) / 1e3);
  };
  ordered_json waits_for;
  if (reason != transport::WaitReason::none)
    waits_for = transport::kWaitReasonNames[static_cast<size_t>(reason)];
  const TimeNs left_ns = reason == transport::WaitReason::rnr          ? wait.rnr_left_ns
                         : reason == transport::WaitReason::pace       ? wait.pace_left_ns
                         : reason == transport::WaitReason::rate_limit ? wait.rate_limit_left_ns
                                                                       : 0;
  ordered_json shown = {{"waits_for", waits_for},
                        {"wait_left_us", in_us(left_ns)},
                        {"oldest_request_age_us", in_us(wait.oldest_age_ns)},
                        {"posted_requests", wait.posted},
                        {"completed_requests", wait.completed},
                        {"answered_messages", wait.answered_messages},
                        {"window_packets", nullptr},
                        {"retries", wait.retries},
                        {"posted_receives", wait.receives_posted},
                        {"unread_completions", wait.unread_completions}};
  if (wait.window_packets != 0) shown["window_packets"] = wait.window_packets;
  return shown;
}

// Shows those counters of a QP alone that are not zero: there may be many QPs.
ordered_json describe(const std::vector<device::QpReport>& qps) {
  ordered_json shown = ordered_json::array();
  for (const device::QpReport& qp : qps) {
    ordered_json counters = ordered_json::object();
    for (const auto& [event, name] : transport::kCounterNames)
      if (qp.counters[event] != 0) counters[name] = qp.counters[event];
    shown.push_back({{"qpn", qp.qpn.value},
                     {"service", text(qp.service)},
                     {"state", text(qp.state)},
                     {"remote_qpn", qp.remote_qpn.value},
                     {"program", qp.program},
                     {"requests", qp.load.requests},
                     {"unacknowledged_packets", qp.load.unacknowledged_psns},
                     {"counters", counters}});
    shown.back().update(describe(qp.wait, qp.waits_for));
  }
  return shown;
}

ordered_json describe(const EngineStats& engine) {
  return {{"turns", engine.turns},
          {"busy_turns", engine.busy_turns},
          {"commands", engine.commands},
          {"yields", engine.yields},
          {"sleeps", engine.sleeps},
          {"block_modes", engine.block_modes},
          {"borrowed_turns", engine.inline_turns},
          {"parallel_turns", engine.parallel.parallel_turns},
          {"worker_turns", engine.parallel.worker_turns},
          {"shared_moves", engine.parallel.shared_moves},
          {"most_threads", engine.parallel.most_threads}};
}

ordered_json describe(const device::HcaConfig& config, const DeviceSnapshot& snapshot,
                      const LinkPair& links) {
  ordered_json gids = ordered_json::array();
  for (const device::GidEntry& entry : config.port.gids)
    if (entry.gid != wire::Gid{}) gids.push_back(to_text(entry.gid));
  return {{"name", config.name},
          {"node_guid", guid_text(config.node_guid)},
          {"mac", to_text(config.port.mac)},
          {"gids", gids},
          {"mtu", config.port.mtu_bytes},
          {"port_state", config.port.active ? "ACTIVE" : "DOWN"},
          {"objects", describe(snapshot.objects)},
          {"counters", describe(snapshot.counters)},
          {"qps", describe(snapshot.qps)},
          {"recovery", describe(snapshot.recoveries)},
          {"port", describe(snapshot.port)},
          {"congestion_control", describe(snapshot.congestion, snapshot.flows)},
          {"impairments", describe(links)}};
}

}  // namespace

std::string to_json(const Status& status) {
  constexpr double kNsPerS = 1e9;
  ordered_json devices = ordered_json::array();
  for (size_t i = 0; i < status.devices.size(); ++i)
    devices.push_back(describe(status.devices[i], status.snapshot.devices[i],
                               i < status.links.size() ? status.links[i] : LinkPair{}));
  for (size_t i = 0; status.shake != nullptr && i < devices.size(); ++i)
    devices[i]["shaken"] = describe(*status.shake, status.shaken[i]);
  ordered_json json = {{"version", ROCEMU_VERSION},
                       {"pid", ::getpid()},
                       {"uptime_s", static_cast<double>(status.uptime_ns) / kNsPerS},
                       {"dma", status.dma ? std::string(dma::to_string(*status.dma)) : "auto"},
                       {"devices", devices},
                       {"engine", describe(status.snapshot.engine)}};
  if (status.shake != nullptr) json["shake"] = shake::to_text(*status.shake);
  if (!status.network.empty()) json["network"] = describe(status.network);
  if (!status.metrics.empty()) json["metrics"] = status.metrics;
  if (status.cm != nullptr) json["connection_management"] = describe(*status.cm);
  return json.dump(2) + "\n";
}

}  // namespace rocemu::daemon
