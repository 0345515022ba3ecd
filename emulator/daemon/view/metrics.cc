#include "emulator/daemon/view/metrics.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/daemon/attachment/address_text.h"
#include "emulator/daemon/view/qp_text.h"
#include "emulator/daemon/view/sysfs_counters.h"

namespace rocemu::daemon {
namespace {

using transport::TraceEvent;

// Of each QP there are these; more would make a text of many megabytes.
constexpr std::pair<TraceEvent, std::string_view> kQpCounters[] = {
    {TraceEvent::sent, "sent_pkts"},
    {TraceEvent::payload_sent, "sent_bytes"},
    {TraceEvent::delivered, "rcvd_pkts"},
    {TraceEvent::payload_received, "rcvd_bytes"},
    {TraceEvent::retransmitted, "retransmitted_pkts"},
    {TraceEvent::ack_timeout, "local_ack_timeout_err"},
    {TraceEvent::early_retransmission, "roce_adp_retrans"},
    {TraceEvent::sequence_nak_received, "packet_seq_err"},
    {TraceEvent::rnr_nak_received, "rnr_nak_retry_err"},
    {TraceEvent::rnr_nak_sent, "send_rnr_err"},
    {TraceEvent::out_of_sequence, "out_of_sequence"},
    {TraceEvent::duplicate_request, "duplicate_request"},
    {TraceEvent::request_failed, "req_cqe_error"},
    {TraceEvent::receive_failed, "resp_cqe_error"},
    {TraceEvent::cnp_handled, "rp_cnp_handled"},
};

// The text of one metric after the other.
class Text {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <class Value>
  void sample(std::string_view labels, const Value& value) {
    const auto to = std::back_inserter(text_);
    labels.empty() ? fmt::format_to(to, "{} {}\n", name_, value)
                   : fmt::format_to(to, "{}{{{}}} {}\n", name_, labels, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

// A program chooses its name: what would end the label's value is escaped, and what may be no UTF-8
// is left out.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c < ' ' || c > '~' ? '?' : c;
  }
  return text;
}

std::string label(const device::HcaConfig& device) {
  return fmt::format(R"(device="{}",port="1")", device.name);
}

// Numbers that a device's port has under the same names as all others.
void add_counters(Text& text, const Metrics& metrics, std::string_view folder,
                  const std::vector<NamedCounters>& by_device) {
  for (size_t i = 0; !by_device.empty() && i < by_device.front().size(); ++i) {
    const std::string_view name = by_device.front()[i].first;
    if (name == "lifespan") continue;
    // sysfs has these in words of four bytes.
    const bool in_words = name == "port_rcv_data" || name == "port_xmit_data";
    text.begin(fmt::format("rocemu_{}{}_total", name, in_words ? "_bytes" : ""), "counter",
               fmt::format("{}/{}, docs/counters.md", folder, name));
    for (size_t d = 0; d < by_device.size(); ++d)
      text.sample(label(metrics.devices[d]), by_device[d][i].second * (in_words ? 4 : 1));
  }
}

void add_port_counters(Text& text, const Metrics& metrics) {
  std::vector<NamedCounters> port;
  std::vector<NamedCounters> hardware;
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    const DeviceSnapshot& device = metrics.snapshot.devices[d];
    const uint64_t link_downs = metrics.link_downs.empty() ? 0 : metrics.link_downs[d];
    port.push_back(port_counters({device.counters, device.port, link_downs}));
    hardware.push_back(hw_counters(device.counters));
  }
  add_counters(text, metrics, "counters", port);
  add_counters(text, metrics, "hw_counters", hardware);
}

void add_devices(Text& text, const Metrics& metrics) {
  text.begin("rocemu_port_up", "gauge", "1 when the port is active, else 0");
  for (const device::HcaConfig& device : metrics.devices)
    text.sample(label(device), device.port.active ? 1 : 0);
  text.begin("rocemu_objects", "gauge", "Objects of verbs that programs hold");
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    const device::ObjectCounts& objects = metrics.snapshot.devices[d].objects;
    const std::pair<std::string_view, uint64_t> kinds[] = {{"contexts", objects.contexts},
                                                           {"pds", objects.pds},
                                                           {"mrs", objects.mrs},
                                                           {"cqs", objects.cqs},
                                                           {"qps", objects.qps},
                                                           {"srqs", objects.srqs},
                                                           {"ahs", objects.ahs}};
    for (const auto& [kind, count] : kinds)
      text.sample(fmt::format(R"({},kind="{}")", label(metrics.devices[d]), kind), count);
  }
}

struct ShownQp {
  std::string labels;
  const device::QpReport* report;
};

std::vector<ShownQp> list_qps(const Metrics& metrics) {
  std::vector<ShownQp> shown;
  for (size_t d = 0; d < metrics.devices.size(); ++d) {
    for (const device::QpReport& qp : metrics.snapshot.devices[d].qps) {
      const auto program = metrics.programs.find(qp.program);
      const std::string peer =
          qp.remote_qpn.value == 0
              ? ""
              : fmt::format("{}/{}", rocemu::to_text(qp.remote_gid), qp.remote_qpn.value);
      shown.push_back(
          {fmt::format(R"({},qpn="{}",service="{}",program="{}",pid="{}",peer="{}")",
                       label(metrics.devices[d]), qp.qpn.value, text(qp.service),
                       program == metrics.programs.end() ? "" : escaped(program->second),
                       qp.program, peer),
           &qp});
    }
  }
  return shown;
}

void add_qps(Text& text, const Metrics& metrics) {
  const std::vector<ShownQp> qps = list_qps(metrics);
  const auto add = [&](const std::string& name, std::string_view type, std::string_view help,
                       const std::function<uint64_t(const device::QpReport&)>& value) {
    text.begin(name, type, help);
    for (const ShownQp& qp : qps) text.sample(qp.labels, value(*qp.report));
  };
  add("rocemu_qp_requests", "gauge", "Send requests that the NIC has taken and not completed",
      [](const device::QpReport& qp) { return qp.load.requests; });
  add("rocemu_qp_unacknowledged_packets", "gauge", "Packets in flight",
      [](const device::QpReport& qp) { return qp.load.unacknowledged_psns; });
  for (const auto& [event, name] : kQpCounters)
    add(fmt::format("rocemu_qp_{}_total", name), "counter",
        fmt::format("hw_counters/{} of a QP, docs/counters.md", name),
        [event = event](const device::QpReport& qp) { return qp.counters[event]; });
}

}  // namespace

std::string to_prometheus(const Metrics& metrics) {
  constexpr double kNsPerS = 1e9;
  Text text;
  text.begin("rocemu_info", "gauge", "1, with what the NIC is as labels");
  text.sample("version=\"" ROCEMU_VERSION "\"", 1);
  text.begin("rocemu_uptime_seconds", "gauge", "Since the NIC's start");
  text.sample("", static_cast<double>(metrics.uptime_ns) / kNsPerS);
  add_devices(text, metrics);
  add_port_counters(text, metrics);
  add_qps(text, metrics);
  return text.take();
}

}  // namespace rocemu::daemon
