#include "emulator/cli/top/once.h"

#include <map>

#include "emulator/cli/top/columns.h"
#include "emulator/cli/top/numbers.h"

namespace rocemu::cli::top {
namespace {

std::string lines_of(const Table& table) {
  const Layout layout = lay_out(table, 0);
  std::string text = layout.header + "\n";
  for (const std::string& row : layout.rows) text += row + "\n";
  return text;
}

Table chosen_qps(const View& view, const Choice& choice) {
  Table table = table_of_qps(view);
  sort(table, choice.order);
  filter(table, choice.filter);
  return table;
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void add_rates(Json& object, const std::optional<Rates>& rates) {
  const auto add = [&](const char* name, double Rates::*which) {
    object[name] = rates ? Json((*rates).*which) : Json(nullptr);
  };
  add("tx_bits_per_s", &Rates::tx_bits);
  add("rx_bits_per_s", &Rates::rx_bits);
  add("messages_per_s", &Rates::messages);
  add("retransmissions_per_s", &Rates::retransmissions);
  add("rnr_naks_per_s", &Rates::rnrs);
}

Json waits(const std::string& waits_for) {
  return waits_for.empty() ? Json(nullptr) : Json(waits_for);
}

Json describe(const Qp& qp) {
  Json json = {{"device", qp.now.device},        {"qpn", qp.now.qpn},
               {"service", qp.now.service},      {"state", qp.now.state},
               {"program", qp.now.program},      {"program_name", qp.program},
               {"remote_qpn", qp.now.remote_qpn}};
  add_rates(json, qp.rates);
  json["window_packets"] = or_null(qp.now.window_packets);
  json["unacknowledged_packets"] = qp.now.unacknowledged_packets;
  json["posted_requests"] = qp.now.posted_requests;
  json["requests"] = qp.now.requests;
  json["posted_receives"] = qp.now.posted_receives;
  json["unread_completions"] = qp.now.unread_completions;
  json["allowed_rate_mbps"] = or_null(qp.now.allowed_mbps);
  json["oldest_request_age_us"] = or_null(qp.now.oldest_age_us);
  json["waits_for"] = waits(qp.waits_for);
  return json;
}

Json describe(const Program& program) {
  Json json = {{"program", program.pid},
               {"program_name", program.name},
               {"qps", program.qps},
               {"waiting_qps", program.waiting_qps}};
  add_rates(json, program.rates);
  json["oldest_request_age_us"] = or_null(program.oldest_age_us);
  json["waits_for"] = waits(program.waits_for);
  return json;
}

Json describe(const Device& device) {
  Json json = {
      {"name", device.now.name}, {"port_state", device.now.state}, {"qps", device.now.qps}};
  add_rates(json, device.rates);
  json["paused_share"] = or_null(device.paused_share);
  json["algorithm"] = device.now.algorithm;
  return json;
}

}  // namespace

std::string once_text(const View& view, const Choice& choice) {
  std::string text = "NIC '" + view.nic + "', up " + clock_time(view.uptime_s) + ", rates over " +
                     short_time(view.interval_s * 1e6) + "\n\n";
  text += lines_of(table_of_devices(view)) + "\n";
  text += lines_of(table_of_programs(view)) + "\n";
  text += lines_of(chosen_qps(view, choice));
  if (view.qps_not_shown > 0)
    text += "and " + std::to_string(view.qps_not_shown) + " QPs more that the NIC does not list\n";
  return text;
}

Json once_json(const View& view, const Choice& choice) {
  Json json = {{"name", view.nic},
               {"uptime_s", view.uptime_s},
               {"interval_s", view.interval_s},
               {"devices", Json::array()},
               {"programs", Json::array()},
               {"qps", Json::array()},
               {"qps_not_shown", view.qps_not_shown}};
  for (const Device& device : view.devices) json["devices"].push_back(describe(device));
  for (const Program& program : view.programs) json["programs"].push_back(describe(program));
  std::map<std::string, const Qp*> by_key;
  for (const Qp& qp : view.qps) by_key[key_of(qp)] = &qp;
  for (const Row& row : chosen_qps(view, choice).rows)
    json["qps"].push_back(describe(*by_key.at(row.key)));
  return json;
}

}  // namespace rocemu::cli::top
