#include "emulator/cli/top/columns.h"

#include "emulator/cli/top/numbers.h"
#include "emulator/cli/top/reasons.h"

namespace rocemu::cli::top {
namespace {

Cell text(std::string value) { return {std::move(value), 0}; }
Cell whole(std::uint64_t value) { return {std::to_string(value), static_cast<double>(value)}; }
Cell number(std::optional<std::uint64_t> value) { return value ? whole(*value) : Cell{"-", -1}; }
Cell age(std::optional<double> time_us) {
  return time_us ? Cell{short_time(*time_us), *time_us} : Cell{"-", -1};
}
Cell rate(const std::optional<Rates>& rates, double Rates::*which) {
  if (!rates) return {"-", -1};
  const double value = (*rates).*which;
  return {short_number(value), value};
}

Cell allowed_cell(const QpReport& qp) {
  if (!qp.allowed_mbps) return {"-", -1};
  const double bits = *qp.allowed_mbps * 1e6;
  return {short_number(bits), bits};
}

std::string process(std::int64_t pid) { return pid == 0 ? "-" : std::to_string(pid); }

const std::vector<Column>& qp_columns() {
  static const std::vector<Column> kColumns = {
      {.id = "device", .title = "DEVICE", .least = 7},
      {.id = "qpn", .title = "QPN", .number = true},
      {.id = "program", .title = "PROGRAM", .least = 8},
      {.id = "pid", .title = "PID", .number = true, .spare = 10},
      {.id = "service", .title = "SVC", .spare = 9},
      {.id = "peer", .title = "PEER", .number = true, .spare = 11},
      {.id = "state", .title = "ST", .spare = 2},
      {.id = "tx", .title = "TXb/s", .number = true},
      {.id = "rx", .title = "RXb/s", .number = true},
      {.id = "messages", .title = "MSG/s", .number = true},
      {.id = "retransmissions", .title = "RTX/s", .number = true},
      {.id = "rnr", .title = "RNR/s", .number = true},
      {.id = "window", .title = "WIN", .number = true, .spare = 1},
      {.id = "flight", .title = "OUT", .number = true, .spare = 7},
      {.id = "posted", .title = "SQ", .number = true, .spare = 6},
      {.id = "receives", .title = "RQ", .number = true, .spare = 5},
      {.id = "unread", .title = "CQ", .number = true, .spare = 4},
      {.id = "allowed", .title = "CCb/s", .number = true, .spare = 3},
      {.id = "age", .title = "AGE", .number = true},
      {.id = "waits", .title = "WAITS FOR"},
  };
  return kColumns;
}

Row qp_row(const Qp& qp) {
  const QpReport& now = qp.now;
  return {key_of(qp),
          {text(now.device),
           whole(now.qpn),
           text(qp.program.empty() ? "-" : qp.program),
           {process(now.program), static_cast<double>(now.program)},
           text(now.service),
           {now.remote_qpn == 0 ? "-" : std::to_string(now.remote_qpn),
            static_cast<double>(now.remote_qpn)},
           text(now.state),
           rate(qp.rates, &Rates::tx_bits),
           rate(qp.rates, &Rates::rx_bits),
           rate(qp.rates, &Rates::messages),
           rate(qp.rates, &Rates::retransmissions),
           rate(qp.rates, &Rates::rnrs),
           number(now.window_packets),
           whole(now.unacknowledged_packets),
           whole(now.posted_requests + now.requests),
           whole(now.posted_receives),
           whole(now.unread_completions),
           allowed_cell(now),
           age(now.oldest_age_us),
           text(reason_word(qp.waits_for))}};
}

}  // namespace

std::string key_of(const Qp& qp) { return qp.now.device + "/" + std::to_string(qp.now.qpn); }

std::vector<std::string> qp_column_ids() {
  std::vector<std::string> ids;
  for (const Column& column : qp_columns()) ids.push_back(column.id);
  return ids;
}

Table table_of_qps(const View& view) {
  Table table{.columns = qp_columns(), .rows = {}};
  for (const Qp& qp : view.qps) table.rows.push_back(qp_row(qp));
  return table;
}

Table table_of_programs(const View& view) {
  Table table{.columns = {{.id = "pid", .title = "PID", .number = true},
                          {.id = "program", .title = "PROGRAM", .least = 8},
                          {.id = "qps", .title = "QPS", .number = true},
                          {.id = "waiting", .title = "WAITING", .number = true},
                          {.id = "tx", .title = "TXb/s", .number = true},
                          {.id = "rx", .title = "RXb/s", .number = true},
                          {.id = "messages", .title = "MSG/s", .number = true},
                          {.id = "retransmissions", .title = "RTX/s", .number = true},
                          {.id = "rnr", .title = "RNR/s", .number = true},
                          {.id = "age", .title = "AGE", .number = true},
                          {.id = "waits", .title = "WAITS FOR"}},
              .rows = {}};
  for (const Program& program : view.programs) {
    table.rows.push_back({process(program.pid),
                          {{process(program.pid), static_cast<double>(program.pid)},
                           text(program.name.empty() ? "-" : program.name),
                           whole(program.qps),
                           whole(program.waiting_qps),
                           rate(program.rates, &Rates::tx_bits),
                           rate(program.rates, &Rates::rx_bits),
                           rate(program.rates, &Rates::messages),
                           rate(program.rates, &Rates::retransmissions),
                           rate(program.rates, &Rates::rnrs),
                           age(program.oldest_age_us),
                           text(reason_word(program.waits_for))}});
  }
  return table;
}

Table table_of_devices(const View& view) {
  Table table{.columns = {{.id = "device", .title = "DEVICE", .least = 7},
                          {.id = "state", .title = "PORT"},
                          {.id = "qps", .title = "QPS", .number = true},
                          {.id = "tx", .title = "TXb/s", .number = true},
                          {.id = "rx", .title = "RXb/s", .number = true},
                          {.id = "messages", .title = "MSG/s", .number = true},
                          {.id = "retransmissions", .title = "RTX/s", .number = true},
                          {.id = "rnr", .title = "RNR/s", .number = true},
                          {.id = "paused", .title = "PAUSED", .number = true, .spare = 1},
                          {.id = "algorithm", .title = "CONGESTION CONTROL", .spare = 2}},
              .rows = {}};
  for (const Device& device : view.devices) {
    const double percent = device.paused_share.value_or(0) * 100;
    table.rows.push_back({device.now.name,
                          {text(device.now.name),
                           text(device.now.state),
                           whole(device.now.qps),
                           rate(device.rates, &Rates::tx_bits),
                           rate(device.rates, &Rates::rx_bits),
                           rate(device.rates, &Rates::messages),
                           rate(device.rates, &Rates::retransmissions),
                           rate(device.rates, &Rates::rnrs),
                           {short_number(percent) + "%", percent},
                           text(device.now.algorithm.empty() ? "-" : device.now.algorithm)}});
  }
  return table;
}

}  // namespace rocemu::cli::top
